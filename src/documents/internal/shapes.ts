/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const documentsText = "limit?:n"

export const nodeDocumentsLayer = "timeout?:d;maxMemory?:n"
