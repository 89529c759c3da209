/** What a terminal, a page and an editor show of a run. */
export * as Printer from "./Printer.ts"
export * as View from "./View.ts"
