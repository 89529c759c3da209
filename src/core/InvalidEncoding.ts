/**
 * The error of every decoder of our own wire formats (messages, events, state).
 */
import * as Schema from "effect/Schema"

/**
 * A stored or received value is not what this version of the library reads. `path` names the field, `found` what was
 * there (cut to a line), `expected` what would have been right.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidEncoding extends Schema.TaggedError<InvalidEncoding>()("InvalidEncoding", {
  what: Schema.Literals(["message", "event", "state", "checkpoint"]),
  path: Schema.String,
  found: Schema.String,
  expected: Schema.String
}) {
  override get message(): string {
    return `Cannot decode this ${this.what}: at ${this.path === "" ? "the top" : this.path} expected ${this.expected}, found ${this.found}`
  }
}
