/**
 * Tool selection, on its own: it needs the library `minisearch`.
 */
export * as ToolSelection from "./ToolSelection.ts"
