/**
 * The failure of a word thrown into a thread where nobody is at work.
 */
import * as Schema from "effect/Schema"

/** No run goes on in this thread now. Send an input. */
export class NotRunning extends Schema.TaggedError<NotRunning>()("NotRunning", { threadId: Schema.String }) {
  override get message(): string {
    return `No run goes on in the thread ${JSON.stringify(this.threadId)} now; send an input`
  }
}
