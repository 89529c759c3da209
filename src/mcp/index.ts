/**
 * Model Context Protocol: any server's tools in an agent, any agent behind a server.
 */
export * as Mcp from "./Mcp.ts"
export * as McpAgent from "./McpAgent.ts"
export * as McpAuthorization from "./McpAuthorization.ts"
export * as McpBackend from "./McpBackend.ts"
export * as McpConfig from "./McpConfig.ts"
export * as McpConfigFile from "./McpConfigFile.ts"
export * as McpError from "./McpError.ts"
export * as McpOAuth from "./McpOAuth.ts"
export * as McpServers from "./McpServers.ts"
