/** Files and commands of this machine. */
export * as AgentHome from "./AgentHome.ts"
export * as FilesystemBackend from "./FilesystemBackend.ts"
export * as LocalShell from "./LocalShell.ts"
