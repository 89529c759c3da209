/**
 * A text that is no patch, or a patch that does not fit its files.
 */
import * as Schema from "effect/Schema"

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
