/** What a terminal, a page and an editor show of a run. */
export * as Change from "./Change.ts"
export * as Form from "./Form.ts"
export * as Printer from "./Printer.ts"
export * as Transcript from "./Transcript.ts"
export * as View from "./View.ts"
