/** Messages between the program and the thread that reads a PDF. */

/** A request: opens a document, or reads a page. */
export type Ask =
  | { readonly id: number; readonly bytes: Uint8Array; readonly password: string | undefined }
  | { readonly id: number; readonly page: number }

/** The result, or the name and message of an error. `isMissing` is true if `unpdf` is not installed. */
export type Answer =
  | { readonly id: number; readonly count: number }
  | { readonly id: number; readonly text: string }
  | { readonly id: number; readonly name: string; readonly problem: string; readonly isMissing: boolean }
