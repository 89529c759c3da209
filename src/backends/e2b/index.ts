/**
 * Sandboxes of E2B. Needs the package `e2b`.
 */
export * as E2bSandbox from "./E2bSandbox.ts"
