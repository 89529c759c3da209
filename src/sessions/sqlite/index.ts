/**
 * Threads in an SQLite file, and SQL on one. For Node: it stands on `node:sqlite`.
 */
export * as SqliteClient from "./SqliteClient.ts"
export * as SqliteSessions from "./SqliteSessions.ts"
