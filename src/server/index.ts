/** Agents behind servers. */
export * as AgUi from "./AgUi.ts"
export * as AiSdk from "./AiSdk.ts"
export * as McpAgent from "./McpAgent.ts"
export * as OpenAi from "./OpenAi.ts"
export * as Schedules from "./Schedules.ts"
export * as Server from "./Server.ts"
export * as Trigger from "./Trigger.ts"
export * as Webhooks from "./Webhooks.ts"
