/** The change of an edit or a write before it is approved, as a diff. */
import * as Effect from "effect/Effect"
import * as TextDiff from "effect/TextDiff"
import type * as Approval from "../../../core/Approval.ts"
import type * as Backend from "../../../core/Backend.ts"
import { escapeUnseen } from "../../../support/text/clean.ts"
import * as Change from "../../../view/Change.ts"

/** The diff of a change. */
export interface Preview {
  readonly path: string
  readonly isNew: boolean
  readonly lines: ReadonlyArray<string>
}

/** Compares the text of a file before and after a change. */
export const diffOf = ({ after, before, path }: Change.Change): Preview => ({
  path,
  isNew: before === undefined,
  lines: escapeUnseen(TextDiff.unified(TextDiff.lines(before ?? "", after, { maxEdits: 2_000 })))
    .split("\n")
    .filter((line) => line !== "" && !/^(?:---|\+\+\+) /.test(line))
})

/** The change of a call that edits or writes a file; `undefined` for other calls, and for files that are no plain text. */
export const previewOf = (backend: Pick<Backend.Service, "download">, request: Approval.Request) =>
  Effect.map(Change.ofCall(backend, request), (change) => (change === undefined ? undefined : diffOf(change)))
