/** The failures of documents, in the words of a person. */
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import { DocumentError } from "../../core/Document.ts"
import { loadPeer } from "../../support/effect/peer.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine } from "../../support/text/untrusted.ts"

type Reason = DocumentError["reason"]

/** Makes the failures of a format. What others say of it is kept short, and on one line. */
export const failing =
  (format: string) =>
  (reason: Reason, detail: string, cause?: unknown): DocumentError =>
    new DocumentError({
      reason,
      format,
      message: cut(oneLine(detail), 300),
      ...(cause === undefined ? {} : { cause })
    })

export type Fail = ReturnType<typeof failing>

/** The message of whatever a package threw. */
export const messageOf = (cause: unknown): string => {
  const inner = Cause.isUnknownError(cause) ? cause.cause : cause
  return inner instanceof Error ? inner.message : "it can't be read"
}

/** Loads the package that reads a format. */
export const load = <Module>(
  fail: Fail,
  name: string,
  from: () => Promise<Module>
): Effect.Effect<Module, DocumentError> => loadPeer(name, from, (detail, cause) => fail("Unavailable", detail, cause))
