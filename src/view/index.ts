/** What a terminal, a page and an editor show of a run. */
export * as View from "./View.ts"
