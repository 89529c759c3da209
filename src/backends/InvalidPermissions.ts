/**
 * Rules of `Permissions` that can't be followed.
 */
import * as Schema from "effect/Schema"

/** These rules can't be followed. `rule` is the index of the one that is wrong, `field` what is wrong about it. */
export class InvalidPermissions extends Schema.TaggedError<InvalidPermissions>()("InvalidPermissions", {
  rule: Schema.Union([Schema.Finite, Schema.Literal("default")]),
  field: Schema.Literals(["operations", "paths", "mode", "default"]),
  problem: Schema.String
}) {
  override get message(): string {
    const where = this.rule === "default" ? "default" : `rules[${this.rule}].${this.field}`
    return `These permissions can't be taken: ${where}: ${this.problem}`
  }
}
