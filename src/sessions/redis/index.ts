/**
 * Threads in Redis.
 */
export * as RedisSessions from "./RedisSessions.ts"
