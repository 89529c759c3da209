/** The composition root: everything above core, stacked. */
export * as DeepAgent from "./DeepAgent.ts"
