/**
 * Sandboxes of Vercel. Needs the package `@vercel/sandbox`.
 */
export * as VercelSandbox from "./VercelSandbox.ts"
