/** Errors of document readers. */
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import { DocumentError } from "../../core/Document.ts"
import { loadPeer } from "../../support/effect/peer.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine } from "../../support/text/untrusted.ts"

/** Makes the error constructor of a format. It shortens details to one line. */
export const makeFail =
  (format: string) =>
  (reason: DocumentError["reason"], detail: string, cause?: unknown): DocumentError =>
    new DocumentError({
      reason,
      format,
      message: cut(oneLine(detail), 300),
      ...(cause === undefined ? {} : { cause })
    })

export type Fail = ReturnType<typeof makeFail>

/** Reads the message of an error that a package threw. */
export const messageOf = (cause: unknown): string => {
  const inner = Cause.isUnknownError(cause) ? cause.cause : cause
  return inner instanceof Error ? inner.message : "it can't be read"
}

/** Loads the optional package of a format. */
export const loadPackage = <Module>(
  fail: Fail,
  name: string,
  from: () => Promise<Module>
): Effect.Effect<Module, DocumentError> => loadPeer(name, from, (detail, cause) => fail("Unavailable", detail, cause))
