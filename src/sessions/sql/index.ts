/**
 * Threads in a SQL database: Postgres, or SQLite.
 */
export * as SqlSessions from "./SqlSessions.ts"
