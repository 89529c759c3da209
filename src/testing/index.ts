/**
 * What agents are tested with: a model that follows a script, recordings of real models, ids that can be foretold,
 * and what a test looks at.
 */
export * as AgentTest from "./AgentTest.ts"
export * as BackendConformance from "./BackendConformance.ts"
export * as Cassette from "./Cassette.ts"
export * as ChatModelConformance from "./ChatModelConformance.ts"
export * as SessionConformance from "./SessionConformance.ts"
export * as TestBackend from "./TestBackend.ts"
export * as TestChatModel from "./TestChatModel.ts"
export * as TestIds from "./TestIds.ts"
