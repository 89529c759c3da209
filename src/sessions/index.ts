/** Threads that outlive a run: where they are kept, and chats on them. */
export * as Branch from "./Branch.ts"
export * as Chat from "./Chat.ts"
export * as JsonlSessions from "./JsonlSessions.ts"
export * as MemorySessions from "./MemorySessions.ts"
export * as SessionStore from "./SessionStore.ts"
