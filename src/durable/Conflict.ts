/** The failure of an input whose id is another's. */
import * as Schema from "effect/Schema"

/** An input with this id, and other content, was taken before. Send it with an id of its own. */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", {
  threadId: Schema.String,
  inputId: Schema.String
}) {
  override get message(): string {
    return `The thread ${JSON.stringify(this.threadId)} has another input with the id ${JSON.stringify(this.inputId)}; send this one with an id of its own`
  }
}
