/** The Agent Client Protocol: agents in editors, and agents of others as ours. */
export * as AcpAgent from "./AcpAgent.ts"
export * as AcpServer from "./AcpServer.ts"
export * from "./AcpError.ts"
