/** The failure of a steering message for a thread without a run. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/** The thread has no run now. Send an input. */
export class NotRunning extends TaggedError<NotRunning>()("NotRunning", { threadId: Schema.String }) {
  override get message(): string {
    return `The thread ${JSON.stringify(this.threadId)} has no run now; send an input`
  }
}
