/**
 * The order in which a script gets its answers. A script that gets the same answers in the same order does the same, also
 * where its branches race with each other.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ScriptCall } from "../../Scripts.ts"
import type { Stillness } from "./stillness.ts"

export interface Sequence {
  /** Names a call by its key. */
  readonly name: (call: ScriptCall, key: string) => void
  /** Waits for the turn of an answer: after all before it, or after all known ones. */
  readonly await: (key: string) => Effect.Effect<void>
  readonly onAnswer: (id: number) => void
  /** The keys of the answers that the script has got. */
  readonly given: () => ReadonlyArray<string>
}

/** Makes the sequence of one run of a script, that begins with these answers. */
export const make = (order: ReadonlyArray<string>, { hold }: Stillness): Sequence => {
  const places = new Map(order.map((key, at) => [key, at]))
  const names = new Map<number, string>()
  const answerKeys: Array<string> = []
  const waiting = new Map<number, Deferred.Deferred<void>>()
  const isDue = (place: number): boolean => answerKeys.length >= place
  return {
    name: ({ id }, key) => void names.set(id, key),
    await: (key) =>
      Effect.suspend(() => {
        const place = places.get(key) ?? order.length
        if (isDue(place)) return Effect.void
        const turn = waiting.get(place) ?? Deferred.makeUnsafe<void>()
        waiting.set(place, turn)
        return hold(Deferred.await(turn))
      }),
    onAnswer: (id) => {
      answerKeys.push(names.get(id) ?? "")
      const turn = waiting.get(answerKeys.length)
      if (turn !== undefined) Deferred.doneUnsafe(turn, Exit.void)
    },
    given: () => answerKeys
  }
}
