/** An open PDF: what the readers of PDFs share. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { DocumentError } from "../../../core/Document.ts"
import { failing } from "../failure.ts"

export const fail = failing("PDF")

/** A document that is open until its scope ends: the number of its pages, and the text of each. */
export interface Opened {
  readonly count: number
  readonly text: (page: number) => Effect.Effect<string, DocumentError>
}

export type Open = (
  bytes: Uint8Array,
  password: string | undefined
) => Effect.Effect<Opened, DocumentError, Scope.Scope>

/** Converts an error of the parser, by the name of the error. */
export const failureOf = (name: string, message: string, cause?: unknown): DocumentError =>
  name === "PasswordException"
    ? fail("Encrypted", "it needs a password, or another one", cause)
    : fail("Damaged", message, cause)
