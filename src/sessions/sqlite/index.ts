/**
 * Threads in an SQLite file. For Node: it stands on `node:sqlite`.
 */
export * as SqliteSessions from "./SqliteSessions.ts"
