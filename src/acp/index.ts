/** The Agent Client Protocol: agents in editors, and agents of others as ours. */
export * as AcpServer from "./AcpServer.ts"
export * from "./AcpError.ts"
