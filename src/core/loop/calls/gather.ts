/** Asks the sources about inner calls together that begin together: they see a fan-out as such. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { PreparedCall } from "../../Middleware.ts"
import type { Attempt, InnerCallBatch, Live } from "../live.ts"
import { type Rulings, rulingsOn } from "./rulings.ts"

type AskSources = (live: Live, calls: ReadonlyArray<PreparedCall>) => Effect.Effect<Rulings, unknown, unknown>

/**
 * The way of an attempt to ask the sources. Calls that begin in one tick are asked about at once, so none of them runs
 * before the sources know all of them. Without sources, calls do not wait for each other.
 */
export const gatherRulings =
  (attempt: Attempt): AskSources =>
  (live, calls) =>
    live.compiled.sources.length === 0 ? rulingsOn(live, calls) : gather(attempt, calls)

const gather = (attempt: Attempt, calls: ReadonlyArray<PreparedCall>): Effect.Effect<Rulings, unknown, unknown> =>
  Effect.suspend(() => {
    const open = attempt.gathering
    if (open === undefined) return askTogether(attempt, calls)
    open.calls.push(...calls)
    // Whoever opened the gathering goes on first: requests keep the order of their calls.
    return Effect.flatMap(Effect.tap(Deferred.await(open.rulings), Effect.yieldNow), (rulings) =>
      rulings === undefined ? gather(attempt, calls) : Effect.succeed(ownOf(rulings, calls))
    )
  })

/** Opens a gathering and asks the sources after this tick. An interruption leaves the others to gather again. */
const askTogether = (attempt: Attempt, calls: ReadonlyArray<PreparedCall>) => {
  const { live } = attempt
  const gathering: InnerCallBatch = { calls: [...calls], rulings: Deferred.makeUnsafe() }
  attempt.gathering = gathering
  const close = (): void => {
    if (attempt.gathering === gathering) attempt.gathering = undefined
  }
  const asking = Effect.andThen(
    Effect.yieldNow,
    Effect.suspend(() => {
      close()
      return rulingsOn(live, gathering.calls)
    })
  )
  const shared = Effect.onExit(asking, (exit) => {
    close()
    const isLost = Exit.isFailure(exit) && Exit.hasInterrupts(exit)
    return Deferred.done(gathering.rulings, isLost ? Exit.succeed(undefined) : exit)
  })
  return Effect.map(shared, (rulings) => ownOf(rulings, calls))
}

const ownOf = (rulings: Rulings, calls: ReadonlyArray<PreparedCall>): Rulings => {
  if (rulings.size === 0) return rulings
  return new Map(
    calls.flatMap(({ id }) => {
      const own = rulings.get(id)
      return own === undefined ? [] : [[id, own] as const]
    })
  )
}
