/**
 * A route that `CompositeBackend` can't take.
 */
import * as Schema from "effect/Schema"

/** A composite can't be made with this route. `route` is as it was given. */
export class InvalidRoute extends Schema.TaggedError<InvalidRoute>()("InvalidRoute", {
  route: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The route ${JSON.stringify(this.route)} can't be taken: ${this.problem}`
  }
}
