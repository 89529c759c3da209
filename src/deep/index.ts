/** The composition root: everything above core, stacked. */
export * as DeepAgent from "./DeepAgent.ts"
export * as Facts from "./Facts.ts"
export * as Proposal from "./Proposal.ts"
