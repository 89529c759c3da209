/** Messages to the thread that reads a PDF, and its answers. */

/** A question: the document to open, or the page of it to read. */
export type Ask =
  | { readonly id: number; readonly bytes: Uint8Array; readonly password: string | undefined }
  | { readonly id: number; readonly page: number }

/** The answer, or the name and the message of the parser's error. `isMissing` is true if `unpdf` is not installed. */
export type Answer =
  | { readonly id: number; readonly count: number }
  | { readonly id: number; readonly text: string }
  | { readonly id: number; readonly name: string; readonly problem: string; readonly isMissing: boolean }
