/** The parts of a patch; public by `ApplyPatch`. */
import * as Schema from "effect/Schema"

/**
 * A patch: what happens to which files, in order. A path is one of the backend, from its root.
 *
 * `line` of its parts is where they begin in the text that was parsed (a hunk: its first line after its headers).
 */
export interface Patch {
  readonly changes: ReadonlyArray<Change>
}

/** A file that is made (with these lines), deleted, or changed by hunks and perhaps moved. */
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
 * A changed place in a file. `headers` are lines above it by which it is found (a class, a function in it), without
 * them and without lines that stay or go it adds at the end of the file.
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

/** A patch that can't be read, or does not fit the files. `line` is the line of the patch, counted from 1. */
export class InvalidPatch extends Schema.TaggedError<InvalidPatch>()("InvalidPatch", {
  line: Schema.Finite,
  found: Schema.String,
  expected: Schema.String
}) {
  override get message(): string {
    return `line ${this.line} of the patch: expected ${this.expected}, got ${this.found}`
  }
}
