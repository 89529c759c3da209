/**
 * Tools to test agents with: a model that follows a script, recordings of real models, deterministic ids,
 * and what a test looks at.
 */
export * as AgentTest from "./AgentTest.ts"
export * as BackendConformance from "./BackendConformance.ts"
export * as Cassette from "./Cassette.ts"
export * as ChatModelConformance from "./ChatModelConformance.ts"
export * as LedgerConformance from "./LedgerConformance.ts"
export * as SessionConformance from "./SessionConformance.ts"
export * as TestBackend from "./TestBackend.ts"
export * as TestChatModel from "./TestChatModel.ts"
export * as TestIds from "./TestIds.ts"
