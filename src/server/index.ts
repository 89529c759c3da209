/** Agents behind servers. */
export * as McpAgent from "./McpAgent.ts"
