/**
 * A shell over any backend, with no access to the host. Needs the package `just-bash`.
 */
export * as Bash from "./Bash.ts"
