/** The slash command that lists the numbered sources of a conversation. */
import * as Effect from "effect/Effect"
import * as Sources from "../../../core/Sources.ts"
import { loadThread } from "../../../sessions/journal.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { type Room, threadOf, toProblem } from "../chat/room.ts"

/** Lists the sources by their numbers, as answers cite them. */
export const showSources = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const thread = yield* toProblem(threadOf(room))
  const { checkpoint } =
    thread === undefined ? { checkpoint: undefined } : yield* toProblem(loadThread(room.store, room.at.threadId))
  const lines = checkpoint === undefined ? "" : Sources.render(Sources.of(checkpoint))
  room.ui.show(
    lines === ""
      ? "This conversation has no sources yet."
      : lines
          .split("\n")
          .map((line) => `- ${cleanLine(line)}`)
          .join("\n")
  )
})
