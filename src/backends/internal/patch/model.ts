/** The parts of a patch; public by `ApplyPatch`. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../../../support/effect/taggedError.ts"

/**
 * A patch: an ordered list of changes. Paths are absolute paths of the backend.
 *
 * `line` of each part is its first line in the parsed text (of a hunk, its first line after the headers).
 */
export interface Patch {
  readonly changes: ReadonlyArray<Change>
}

/** A new file with its lines, a deletion, or a change by hunks with an optional move. */
export type Change =
  | { readonly _tag: "Add"; readonly path: string; readonly lines: ReadonlyArray<string>; readonly line: number }
  | { readonly _tag: "Delete"; readonly path: string; readonly line: number }
  | {
      readonly _tag: "Update"
      readonly path: string
      readonly moveTo?: string | undefined
      readonly hunks: ReadonlyArray<Hunk>
      readonly line: number
    }

/**
 * A changed place in a file. `headers` are lines above it that locate it (a class, a function). A hunk with neither
 * headers nor kept or removed lines appends to the file.
 */
export interface Hunk {
  readonly headers: ReadonlyArray<string>
  readonly lines: ReadonlyArray<HunkLine>
  readonly endOfFile: boolean
  readonly line: number
}

/** A line of a hunk. */
export interface HunkLine {
  readonly kind: "keep" | "add" | "remove"
  readonly text: string
}

/** A patch that is malformed, or does not fit the files. `line` is the line of the patch, counted from 1. */
export class InvalidPatch extends TaggedError<InvalidPatch>()("InvalidPatch", {
  line: Schema.Finite,
  found: Schema.String,
  expected: Schema.String
}) {
  override get message(): string {
    return `line ${this.line} of the patch: expected ${this.expected}, got ${this.found}`
  }
}
