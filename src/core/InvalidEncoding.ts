/** The error of every decoder of our own wire formats (messages, events, state). */
import * as Schema from "effect/Schema"

const later = "; if a later effect-deepagents wrote it, update this one"

/**
 * A stored or received value is not what this version of the library reads. `path` names the field, `found` what was
 * there (cut to a line), `expected` what would have been right. At `v` it is the version that it was written in: one
 * that is later than this library is not read, since part of it would be lost.
 */
export class InvalidEncoding extends Schema.TaggedError<InvalidEncoding>()("InvalidEncoding", {
  what: Schema.Literals(["message", "event", "state", "checkpoint"]),
  path: Schema.String,
  found: Schema.String,
  expected: Schema.String
}) {
  override get message(): string {
    return `Cannot decode this ${this.what}: at ${this.path === "" ? "the top" : this.path} expected ${this.expected}, found ${this.found}${this.path === "v" ? later : ""}`
  }
}
