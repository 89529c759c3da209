/**
 * Models on this machine, from GGUF files. Needs the package `node-llama-cpp`.
 */
export * as LlamaChatModel from "./LlamaChatModel.ts"
export * as LlamaEmbeddingModel from "./LlamaEmbeddingModel.ts"
