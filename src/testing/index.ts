/** Tools to test agents: models that follow a script, recordings of real models, deterministic ids, assertions. */
export * as AgentTest from "./AgentTest.ts"
export * as Cassette from "./Cassette.ts"
export * as TestBackend from "./TestBackend.ts"
export * as TestChatModel from "./TestChatModel.ts"
export * as TestIds from "./TestIds.ts"
