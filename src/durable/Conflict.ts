/** The failure of an input with the id of another one. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/** An input with this id and other content was processed before. Send it with an id of its own. */
export class Conflict extends TaggedError<Conflict>()("Conflict", {
  threadId: Schema.String,
  inputId: Schema.String
}) {
  override get message(): string {
    return `The thread ${JSON.stringify(this.threadId)} has another input with the id ${JSON.stringify(this.inputId)}; send this one with an id of its own`
  }
}
