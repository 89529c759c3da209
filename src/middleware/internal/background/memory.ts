/** A thread in the memory of this process, for a task whose later inputs find the work of earlier ones. */
import * as Effect from "effect/Effect"
import type { Checkpoint } from "../../../core/Checkpoint.ts"
import type { Entry, Journal } from "../../../core/Journal.ts"
import type { Json } from "../../../core/Json.ts"
import type { Message } from "../../../core/Message.ts"
import { applyState } from "../../../core/thread/parts.ts"
import { zero } from "../../../core/Usage.ts"

/** Makes a journal with one thread, whatever its id. */
export const makeJournal = (): Journal["Service"] => {
  const messages: Array<Message> = []
  const state = new Map<string, Json>()
  let last: Pick<Checkpoint, "usage" | "rounds" | "spent"> = { usage: zero, rounds: 0 }
  let step = 0
  const add = (entry: Entry): void => {
    step++
    if (entry._tag === "Message") messages.push(entry.message)
    if (entry._tag === "State") applyState(state, entry)
    if (entry._tag === "Step") last = entry
  }
  const append = (entries: ReadonlyArray<Entry>): Effect.Effect<number> =>
    Effect.sync(() => {
      entries.forEach(add)
      return step
    })
  return {
    open: () =>
      Effect.sync(() => ({
        checkpoint:
          step === 0 ? undefined : { messages: [...messages], state: Object.fromEntries(state), ...pick(last) },
        step,
        append
      }))
  }
}

const pick = ({ rounds, spent, usage }: Pick<Checkpoint, "usage" | "rounds" | "spent">) => ({ usage, rounds, spent })
