/** Counts the work of runs: usage, rounds, tool calls, and time without the waits for people. */
import * as Effect from "effect/Effect"
import { add, type Spent, type Usage } from "../Usage.ts"
import type { Live, OpenCall, WaitingTime } from "./live.ts"

export const countUsage = (live: Live, usage: Usage | undefined): void => {
  if (usage === undefined) return
  live.turn.usageSinceRound = add(live.turn.usageSinceRound, usage)
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) one.run.usage = add(one.run.usage, usage)
}

/** Counts turns of the model or calls of tools, here and in all runs above. */
export const countWork = (live: Live, kind: "rounds" | "toolCalls", amount: number): void => {
  if (amount === 0) return
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) {
    one.run.spent = { ...one.run.spent, [kind]: one.run.spent[kind] + amount }
  }
}

/** The work of a run and all runs below it so far. */
export const spentBy = (live: Live): Spent => {
  const now = live.origin.clock.currentTimeMillisUnsafe()
  const { spent } = live.run
  return { ...spent, time: spent.time + Math.max(0, now - live.clock.beganAt - waitedFor(live, "")) }
}

/** Runs work that waits for a person: its time is no working time of the call, nor of anything around the call. */
export const waitingIn = <A, E, R>(
  live: Live,
  call: OpenCall | undefined,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const all = waitsOf(live, call)
    const begin = live.origin.clock.currentTimeMillisUnsafe()
    for (const one of all) if (one.active++ === 0) one.since = begin
    return Effect.onExitPrimitive(work, () => {
      const end = live.origin.clock.currentTimeMillisUnsafe()
      for (const one of all) if (--one.active === 0) one.total += end - one.since
      return undefined
    })
  })

/** The waits of a call, of the calls around it, of its run, and so on up to the outermost run. */
const waitsOf = (live: Live, call: OpenCall | undefined): ReadonlyArray<WaitingTime> => {
  const all: Array<WaitingTime> = []
  let under = call
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) {
    const waits = (one.clock.waits ??= new Map<string, WaitingTime>())
    const addWait = (id: string): void => {
      const wait = waits.get(id) ?? { active: 0, since: 0, total: 0 }
      waits.set(id, wait)
      all.push(wait)
    }
    addWait("")
    for (let outer = under; outer !== undefined; outer = outer.outer) addWait(outer.id)
    under = one.under
  }
  return all
}

/** The milliseconds that a call (or the run, under `""`) waited for people so far. */
export const waitedFor = ({ clock, origin }: Live, id: string): number => {
  const wait = clock.waits?.get(id)
  if (wait === undefined) return 0
  return wait.total + (wait.active === 0 ? 0 : origin.clock.currentTimeMillisUnsafe() - wait.since)
}
