/** The interface that both readers of PDFs implement. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { DocumentError } from "../../../core/Document.ts"
import { makeFail } from "../failure.ts"

export const fail = makeFail("PDF")

/** An open document: the number of its pages, and the text of each. Its scope closes it. */
export interface OpenPdf {
  readonly count: number
  readonly text: (page: number) => Effect.Effect<string, DocumentError>
}

export type OpenFile = (
  bytes: Uint8Array,
  password: string | undefined
) => Effect.Effect<OpenPdf, DocumentError, Scope.Scope>

/** Converts an error of the parser by its name. */
export const failureOf = (name: string, message: string, cause?: unknown): DocumentError =>
  name === "PasswordException"
    ? fail("Encrypted", "it needs a password, or another one", cause)
    : fail("Damaged", message, cause)
