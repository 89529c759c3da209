/** Agents behind servers. */
export * as McpAgent from "./McpAgent.ts"
export * as Server from "./Server.ts"
