/** Agents behind servers. */
export * as AiSdk from "./AiSdk.ts"
export * as McpAgent from "./McpAgent.ts"
export * as Server from "./Server.ts"
