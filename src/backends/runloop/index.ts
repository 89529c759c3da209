/**
 * Sandboxes of Runloop. Needs the package `@runloop/api-client`.
 */
export * as RunloopSandbox from "./RunloopSandbox.ts"
