/** Asks the sources of an agent for their rulings on calls. */
import * as Effect from "effect/Effect"
import type { PreparedCall } from "../../Middleware.ts"
import { refuse, type Ruling } from "../../Ruling.ts"
import type { Live } from "../live.ts"

/** The rulings of all sources, by the id of the call. Sources that only allow are left out. */
export type Rulings = ReadonlyMap<string, ReadonlyArray<Ruling>>

const nothingSaid: Rulings = new Map()

const isFree = (ruling: Ruling | undefined): boolean =>
  ruling === undefined || (ruling._tag === "Allow" && ruling.settles !== true)

const isRefused = (rulings: ReadonlyArray<Ruling> | undefined): boolean =>
  rulings?.some(({ _tag }) => _tag === "Refuse") === true

const forgotten = refuse("default", "This call was not allowed.")

/**
 * Asks every source, in their order, about all calls that would run. A call that one has refused is left out for the
 * next. Most sources never object, and nothing is kept for that.
 */
export const rulingsOn = (live: Live, calls: ReadonlyArray<PreparedCall>): Effect.Effect<Rulings, unknown, unknown> => {
  const { sources } = live.compiled
  const askFrom = (
    index: number,
    open: ReadonlyArray<PreparedCall>,
    before: Rulings
  ): Effect.Effect<Rulings, unknown, unknown> => {
    const source = open.length === 0 ? undefined : sources[index]
    if (source === undefined) return Effect.succeed(before)
    return Effect.flatMap(source(live.run, open), (answers) => {
      if (open.every((_, at) => at < answers.length && isFree(answers[at]))) return askFrom(index + 1, open, before)
      const rulings = new Map(before)
      for (const [at, { id }] of open.entries()) {
        const ruling = at < answers.length ? answers[at] : forgotten
        if (ruling !== undefined) rulings.set(id, [...(rulings.get(id) ?? []), ruling])
      }
      return askFrom(
        index + 1,
        open.filter(({ id }) => !isRefused(rulings.get(id))),
        rulings
      )
    })
  }
  return askFrom(0, calls, nothingSaid)
}
