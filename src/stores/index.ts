/**
 * Stores of what outlives threads: long-term facts, traces of runs, credentials; and where they are kept.
 */
export * as Storage from "./Storage.ts"
export * as StoreError from "./StoreError.ts"
export * as MemoryStore from "./MemoryStore.ts"
export * as MemoryTools from "./MemoryTools.ts"
export * as TraceStore from "./TraceStore.ts"
export * as TraceExport from "./TraceExport.ts"
export * as CredentialKey from "./CredentialKey.ts"
export * as CredentialStore from "./CredentialStore.ts"
export * as Ledger from "./Ledger.ts"
