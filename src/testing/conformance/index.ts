/** Conformance suites of the services that users implement. */
export * as BackendConformance from "./BackendConformance.ts"
export * as ChatModelConformance from "./ChatModelConformance.ts"
export * as LedgerConformance from "./LedgerConformance.ts"
export * as SessionConformance from "./SessionConformance.ts"
