/** The status line of the person: named parts, or the output of a command. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { defined } from "../../../support/json/defined.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import type { StatusFacts, StatusLine } from "./options.ts"
import type { Room } from "./room.ts"

/** The time between two looks at the facts. */
const pause = "300 millis"

/** The longest line in characters. The screen cuts it to its width. */
const longest = 500

const factsOf = <E, R>({ at, desk, ui }: Room<E, R>): StatusFacts => {
  const { context, total } = ui.view()
  return {
    mode: desk.mode(),
    agent: at.setup.name,
    model: at.setup.model,
    threadId: at.threadId,
    usage: total,
    ...defined({ context, vim: ui.vimMode() })
  }
}

/** Asks for the line when its facts have changed. A line that fails leaves the usual one, and is told once. */
export const keepStatusLine = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, lineOf: StatusLine) {
  let before = ""
  let isTold = false
  const look = Effect.gen(function* () {
    const facts = factsOf(room)
    const now = JSON.stringify(facts)
    if (now === before) return
    before = now
    const line = yield* Effect.result(lineOf(facts))
    if (Result.isSuccess(line)) return room.ui.setStatusLine(cut(cleanLine(line.success), longest))
    room.ui.setStatusLine(undefined)
    if (!isTold) room.ui.note("warning", `The status line can't be made: ${cleanLine(line.failure.message)}`)
    isTold = true
  })
  yield* Effect.forever(Effect.andThen(look, Effect.sleep(pause)))
})
