/**
 * Rehearses the calls of a running tool: rules refuse as they do in earnest, reads are done, and nothing acts.
 * A person who then approves the rehearsed calls grants them to the tool, once each.
 */
import * as Effect from "effect/Effect"
import { tunnel, tunnelled } from "../../../support/effect/tunnel.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Slot, Store } from "../../AgentState.ts"
import type { JsonObject } from "../../Json.ts"
import type { RehearsedCall } from "../../Question.ts"
import type { Ask } from "../../Ruling.ts"
import { canonical } from "../../schema/jsonTree.ts"
import { describeArguments } from "../../ToolCall.ts"
import type { Rehearsal } from "../../ToolContext.ts"
import { ToolError } from "../../ToolError.ts"
import type { Attempt, Live } from "../live.ts"
import { resolveName } from "../toolset.ts"
import { countWork } from "../work.ts"
import { type Call, type Doors, inContext, resolve, toPrepared } from "./calls.ts"
import { ruleInRehearsal } from "./gate.ts"
import { gatherRulings } from "./gather.ts"

/** Runs work of a tool in a rehearsal. */
type InRehearsal = <A, E>(work: Effect.Effect<A, E, unknown>) => Effect.Effect<A, E, unknown>

/** Runs a call that only reads, and sets its outcome. */
export type RunReading = (live: Live, call: Call, inRehearsal: InRehearsal) => Effect.Effect<void, unknown, unknown>

/** A defect that says: only the call itself can tell. */
const untold = { rehearsal: "untold" }

const stop = Effect.die(tunnel(untold))

/** The doors of a tool in a rehearsal. Work behind a door is not known before it is done. */
const doors: Doors = {
  call: () => stop,
  ask: () => stop,
  rehearsal: Effect.succeed(() => stop),
  step: (_name, work) => work,
  working: (work) => work
}

/** A copy of a state. Reads fall through to the state of the run. */
const copyOf = (state: Store): Store => {
  const own = new Map<string, unknown>()
  // Only a value of the slot is set by its name.
  const get = <A>(slot: Slot<A>): Effect.Effect<A> =>
    Effect.suspend(() => (own.has(slot.name) ? Effect.succeed(own.get(slot.name) as A) : state.get(slot)))
  const setOwn = <A>(slot: Slot<A>, value: A): Effect.Effect<void> => Effect.sync(() => void own.set(slot.name, value))
  return {
    get,
    set: setOwn,
    update: (slot, f) => Effect.flatMap(get(slot), (current) => setOwn(slot, f(current))),
    names: (prefix) =>
      Effect.map(state.names(prefix), (names) => [
        ...new Set([...names, ...[...own.keys()].filter((name) => name.startsWith(prefix))])
      ]),
    writes: state.writes,
    shared: state.shared
  }
}

const plainOf = ({ by, terms }: Ask): RehearsedCall["asks"][number] => ({
  by,
  ...defined({
    reason: terms.reason,
    deciders: terms.deciders,
    expiresIn: terms.expiresIn,
    byPerson: terms.byPerson
  })
})

const describe = (call: Call): string => {
  const { name, prepared, tool } = call
  if (prepared === undefined || tool === undefined) return name
  return toPrepared(call, tool, prepared).describe?.() ?? `${name} ${describeArguments(prepared.arguments)}`
}

/** Begins a rehearsal: its calls share a copy of the state. */
export const beginRehearsal = (attempt: Attempt, read: RunReading) => {
  const { live } = attempt
  const state = copyOf(live.run.state)
  return Effect.fnUntraced(function* (target: string, args: JsonObject) {
    const name = resolveName(live.turn.toolset, target) ?? target
    const id = `${attempt.call.id}/rehearsed/${++attempt.rehearsed}`
    const call = yield* resolve(
      live,
      { id, name, arguments: args },
      { outer: attempt.call, settled: new Set(), trace: undefined }
    )
    const asks = call.outcome === undefined ? yield* ruleInRehearsal(live, call, gatherRulings(attempt)) : []
    const rehearsed: RehearsedCall = {
      name,
      given: args,
      arguments: call.prepared?.arguments ?? args,
      description: describe(call),
      asks: asks.map(plainOf)
    }
    const inRehearsal: InRehearsal = (work) => inContext(live, call, work, doors, undefined, state)
    const work = call.outcome !== undefined ? Effect.void : rehearseWork(live, call, asks, read, inRehearsal)
    const isTold = yield* Effect.catchCauseIf(
      Effect.as(work, true),
      (cause) => tunnelled(cause)?.error === untold,
      () => Effect.succeed(false)
    )
    const { outcome } = call
    if (!isTold || outcome === undefined) return { call: rehearsed, output: undefined } satisfies Rehearsal
    return "error" in outcome ? yield* outcome.error : ({ call: rehearsed, output: outcome.output } satisfies Rehearsal)
  })
}

/** Reads, or sets the outcome that the tool promises. */
const rehearseWork = (
  live: Live,
  call: Call,
  asks: ReadonlyArray<Ask>,
  read: RunReading,
  inRehearsal: InRehearsal
): Effect.Effect<void, unknown, unknown> => {
  if (call.tool?.annotations.readOnly === true) {
    // A read that somebody must allow is not done before.
    if (asks.length > 0) return Effect.void
    countWork(live, "toolCalls", 1)
    return read(live, call, inRehearsal)
  }
  const rehearse = call.prepared?.rehearse
  if (rehearse === undefined) return Effect.void
  return Effect.match(inRehearsal(Effect.suspend(() => rehearse([]))), {
    onSuccess: (output) => {
      if (output !== undefined) call.outcome = { output }
    },
    onFailure: (error) => {
      call.outcome = { error }
    }
  })
}

// ---- Grants

/** Allows a tool the calls that a person approved. */
export const grant = (attempt: Attempt, calls: ReadonlyArray<RehearsedCall> = []): void => {
  if (calls.length > 0) attempt.granted = [...(attempt.granted ?? []), ...calls]
}

/** Takes the grant of a call, which counts once. */
export const takeGrant = (attempt: Attempt, name: string, args: JsonObject): RehearsedCall | undefined => {
  const { granted } = attempt
  if (granted === undefined || granted.length === 0) return undefined
  const key = canonical(args)
  const at = granted.findIndex((one) => one.name === name && canonical(one.given) === key)
  return at === -1 ? undefined : granted.splice(at, 1)[0]
}

/** Reports whether a granted call still has the arguments that were shown. */
export const isAsShown = ({ granted, prepared }: Call): boolean =>
  granted === undefined || prepared === undefined || canonical(granted.arguments) === canonical(prepared.arguments)

export const notAsShown = new ToolError({
  reason: "Rejected",
  message: "The arguments of this call are not those that were approved, so it was not executed."
})
