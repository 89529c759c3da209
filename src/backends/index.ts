/**
 * Places for an agent's files, and the tools by which it works on them: all that runs anywhere, a browser included.
 */
export * as ApplyPatch from "./ApplyPatch.ts"
export * as CommandRisk from "./CommandRisk.ts"
export * as CustomSandbox from "./CustomSandbox.ts"
export * as CompositeBackend from "./CompositeBackend.ts"
export * as CustomBackend from "./CustomBackend.ts"
export * as FileTools from "./FileTools.ts"
export * as MemoryBackend from "./MemoryBackend.ts"
export * as Permissions from "./Permissions.ts"
export * as StoreBackend from "./StoreBackend.ts"
