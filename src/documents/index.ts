/** Readers of documents: PDF, office files, mail, books, tables. */
export * as Documents from "./Documents.ts"
