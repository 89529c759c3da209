/**
 * Keeps records of the work of open calls, so that a call can run again without repeating it.
 *
 * A record has a place: its kind, its name, a digest of its arguments, and a count of equal ones in this attempt. A
 * place is never a position, since concurrent work begins in another order when it runs again. Records are slots of the
 * run's state, below `inside/<call>/<place>`. A sub-agent's record holds its messages (`m/<index>`), its state
 * (`s/<slot>`, with the records of its own open calls) and its usage (`u`), so each is written once.
 */
import * as Result from "effect/Result"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { AgentError } from "../../AgentError.ts"
import type { Snapshot } from "../../AgentState.ts"
import { fromUnknown, type Json } from "../../Json.ts"
import * as Message from "../../Message.ts"
import { canonical } from "../../schema/jsonTree.ts"
import { fromStored } from "../../thread/storedOutput.ts"
import type { Child } from "../../thread/suspension.ts"
import { text } from "../../ToolOutput.ts"
import type { Attempt, Inside, KeptRecord, Live, OpenCall } from "../live.ts"
import { note, prefixOf, progressOf } from "./journal.ts"
import { decodeDone, type DoneRecord, type DoneOf, encodeDone } from "./records.ts"
import { ownSnapshot } from "./store.ts"

const root = "inside"

const escape = (segment: string): string => segment.replaceAll("%", "%25").replaceAll("/", "%2F")

const unescape = (segment: string): string => segment.replaceAll("%2F", "/").replaceAll("%25", "%")

const callSlot = (callId: string): string => `${root}/${escape(callId)}`

const slotOf = (callId: string, place: string): string => `${callSlot(callId)}/${escape(place)}`

const digest = (value: Json): string => sha256Sync(canonical(value)).slice(0, 32)

/** Divides a state into slots and the records of open calls. */
export const divide = (state: Snapshot): { readonly state: Snapshot; readonly inside: Inside | undefined } => {
  const names = Object.keys(state)
  if (!names.some((name) => name.startsWith(`${root}/`))) return { state, inside: undefined }
  // A slot may have any name, `__proto__` too.
  const own: Array<readonly [string, Json]> = []
  const inside: Inside = new Map()
  for (const [name, json] of Object.entries(state)) {
    if (!name.startsWith(`${root}/`)) {
      own.push([name, json])
      continue
    }
    const [, call = "", place = "", ...below] = name.split("/")
    const records = getOrMake(inside, unescape(call), () => new Map<string, KeptRecord>())
    const before = records.get(unescape(place))
    const record: KeptRecord = {
      done: undefined,
      json: below.length === 0 ? json : before?.json,
      below: before?.below ?? new Map(),
      live: undefined
    }
    if (below.length > 0) record.below.set(below.join("/"), json)
    records.set(unescape(place), record)
  }
  return { state: Object.fromEntries(own), inside }
}

const getOrMake = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const value = make()
  map.set(key, value)
  return value
}

/** The records of sub-agents that a checkpoint of an earlier version holds: by their order. */
export const ofEarlier = (children: { readonly [callId: string]: ReadonlyArray<Child> }): Inside =>
  new Map(
    Object.entries(children).map(([callId, all]) => [
      callId,
      new Map(
        all.map(({ agent, messages, rounds, state, usage }, index): [string, KeptRecord] => [
          `${earlier}${agent}#${index}`,
          {
            done: { _tag: "Child", agent, ends: [] },
            json: undefined,
            below: new Map<string, Json>([
              ...messages.map((message, at) => [`m/${at}`, Message.encode(message)] as const),
              ...Object.entries(state).map(([name, value]) => [`s/${name}`, value] as const),
              ["u", fromUnknown({ usage, rounds })]
            ]),
            live: undefined
          }
        ])
      )
    ])
  )

const earlier = "earlier:"

/** The records as slots of a state. */
export const slotsOf = ({ records: { inside } }: Live): Snapshot => {
  const slots: { [slot: string]: Json } = {}
  if (inside === undefined) return slots
  for (const [callId, records] of inside) {
    for (const [place, { below, done, json, live }] of records) {
      const slot = slotOf(callId, place)
      const value = done === undefined ? json : encodeDone(done)
      if (value !== undefined) slots[slot] = value
      for (const [name, one] of live === undefined ? below : belowOf(live)) slots[`${slot}/${name}`] = one
    }
  }
  return slots
}

/** The conversation and the progress of a sub-agent, as the slots below its record. */
const belowOf = (live: Live): ReadonlyArray<readonly [string, Json]> => [
  ...live.run.messages.map((message, at) => [`m/${at}`, Message.encode(message)] as const),
  ...Object.entries({ ...ownSnapshot(live.run.state), ...slotsOf(live) }).map(
    ([name, value]) => [`s/${name}`, value] as const
  ),
  ["u", progressOf(live)]
]

/** True where records are of use: the call may be run again, by a run that is resumed. */
export const isKept = (live: Live): boolean => live.compiled.suspends || live.records.isJournaled

/** Begins an attempt at a call. A repeated attempt starts anew, except for steps and answers. */
export const begin = (live: Live, call: OpenCall): Attempt => {
  if (call.attempts++ > 0) forgetFailed(live, call.id)
  return {
    live,
    call,
    counts: undefined,
    steps: undefined,
    sessions: undefined,
    active: 0,
    waiting: undefined,
    wake: undefined,
    granted: undefined,
    rehearsed: 0,
    gathering: undefined,
    onStill: undefined,
    isOver: false
  }
}

const forgetFailed = (live: Live, callId: string): void => {
  const records = live.records.inside?.get(callId)
  if (records === undefined) return
  for (const [place, record] of records) {
    if (place.startsWith("step:") || place.startsWith("ask:")) continue
    records.delete(place)
    drop(live, slotOf(callId, place))
    const id = record.done?._tag === "Call" ? record.done.id : undefined
    if (id !== undefined) forget(live, id)
  }
}

/** Notes that a slot is gone, with all below it. */
const drop = (live: Live, slot: string): void => {
  if (live.records.isJournaled) note(live.records, { _tag: "State", slot: `${prefixOf(live.records)}${slot}` })
}

/** Drops the records of a call that has its answer. */
export const forget = (live: Live, callId: string): void => {
  if (live.records.inside?.delete(callId) === true) drop(live, callSlot(callId))
}

/** Forgets the call by whose failure everything failed: the resuming run makes that call again. */
export const forgetFailure = (live: Live, callId: string, error: unknown): void => {
  for (const [place, { done }] of live.records.inside?.get(callId) ?? []) {
    if (done?._tag !== "Call" || done.outcome?._tag !== "Failed" || done.outcome.error !== error) continue
    live.records.inside?.get(callId)?.delete(place)
    drop(live, slotOf(callId, place))
  }
}

/** The places of an earlier run that this attempt did not claim. */
export const leftOver = (attempt: Attempt): ReadonlyArray<string> => {
  const places: Array<string> = []
  for (const [place, { json }] of attempt.live.records.inside?.get(attempt.call.id) ?? []) {
    // Only records of an earlier run have JSON.
    if (json !== undefined && !isSeen(attempt, place)) places.push(place)
  }
  return places
}

/** Drops the records of an earlier run at these places, with what their calls did. */
export const forgetPlaces = ({ call, live }: Attempt, places: ReadonlyArray<string>): void => {
  const records = live.records.inside?.get(call.id)
  for (const place of places) {
    const json = records?.get(place)?.json
    const record = json === undefined ? undefined : Result.getOrUndefined(decodeDone(json))
    if (record?._tag === "Call") forget(live, record.id)
    records?.delete(place)
    drop(live, slotOf(call.id, place))
  }
}

/** Drops the records of all calls but these. */
export const forgetOthers = (live: Live, open: ReadonlyArray<string>): void => {
  for (const callId of live.records.inside?.keys() ?? []) {
    if (!open.some((id) => callId === id || callId.startsWith(`${id}/`))) forget(live, callId)
  }
}

/** Claims the place of work that an attempt begins. The digest of its arguments tells it from others of its name. */
export const claim = (attempt: Attempt, kind: string, name: string, details?: Json): string => {
  const what = details === undefined ? `${kind}:${name}` : `${kind}:${name}:${digest(details)}`
  return `${what}#${count(attempt, what)}`
}

/** Counts how often something was begun in an attempt. */
export const count = (attempt: Attempt, what: string): number => {
  const counts = (attempt.counts ??= new Map<string, number>())
  const nth = (counts.get(what) ?? 0) + 1
  counts.set(what, nth)
  return nth
}

/** The failure of a run whose records are wrong. */
export const invalid = (live: Live, place: string, problem: string): AgentError =>
  new AgentError({ agent: live.run.agent, reason: { _tag: "InvalidState", slot: `${root}: ${place}`, problem } })

/** The record at a place of an attempt. */
export const keptAt = ({ call, live }: Attempt, place: string): KeptRecord | undefined =>
  live.records.inside?.get(call.id)?.get(place)

/** The record at a place, if there is one of this kind. */
export const find = <Tag extends DoneRecord["_tag"]>(
  attempt: Attempt,
  place: string,
  tag: Tag
): Result.Result<DoneOf<Tag> | undefined, AgentError> => {
  const record = keptAt(attempt, place)
  if (record === undefined) return Result.succeed(undefined)
  if (record.done === undefined) {
    if (record.json === undefined) return Result.succeed(undefined)
    const decoded = decodeDone(record.json)
    if (Result.isFailure(decoded)) return Result.fail(invalid(attempt.live, place, decoded.failure.message))
    record.done = decoded.success
  }
  const { done } = record
  return isOf(done, tag)
    ? Result.succeed(done)
    : Result.fail(invalid(attempt.live, place, `it is a record of another kind: ${done._tag}`))
}

const isOf = <Tag extends DoneRecord["_tag"]>(done: DoneRecord, tag: Tag): done is DoneOf<Tag> => done._tag === tag

/** Keeps a record. It is stored with the next step, or by `save`. */
export const keep = ({ call, live }: Attempt, place: string, done: DoneRecord): void => {
  live.records.inside ??= new Map()
  const records = getOrMake(live.records.inside, call.id, () => new Map<string, KeptRecord>())
  const record = records.get(place)
  if (record === undefined) records.set(place, { done, json: undefined, below: new Map(), live: undefined })
  else record.done = done
  if (!live.records.isJournaled) return
  note(live.records, {
    _tag: "State",
    slot: `${prefixOf(live.records)}${slotOf(call.id, place)}`,
    value: encodeDone(done)
  })
}

/** True for a place that was claimed in an attempt. */
const isSeen = ({ counts }: Attempt, place: string): boolean => {
  if (counts === undefined) return false
  const end = place.lastIndexOf("#")
  return counts.has(place) || Number(place.slice(end + 1)) <= (counts.get(place.slice(0, end)) ?? 0)
}

/** Work that an earlier run began in a call and an attempt did not claim. `outcome` is its text, if it is known. */
export interface LeftAlone {
  readonly name: string
  readonly outcome: string | undefined
}

/** The sub-agents and inner calls that an earlier run began in a call, and that an attempt did not ask for. */
export const leftAlone = (attempt: Attempt): ReadonlyArray<LeftAlone> => {
  const unusedWork: Array<LeftAlone> = []
  for (const [place, { done, json, live }] of attempt.live.records.inside?.get(attempt.call.id) ?? []) {
    if (live !== undefined || isSeen(attempt, place)) continue
    const record = done ?? (json === undefined ? undefined : Result.getOrUndefined(decodeDone(json)))
    if (record?._tag === "Child") {
      unusedWork.push({ name: record.agent, outcome: record.open === undefined ? record.ends.at(-1)?.text : undefined })
    }
    if (record?._tag === "Call" && record.status !== "asked") {
      unusedWork.push({ name: place.split(":")[1] ?? "", outcome: record.outcome && textOf(record.outcome) })
    }
  }
  return unusedWork
}

const textOf = (outcome: NonNullable<DoneOf<"Call">["outcome"]>): string =>
  outcome._tag === "Failed" ? `failed: ${outcome.error.message}` : text(fromStored(outcome))

/** The number of the next call or question inside of a call: after all that were given, also by an earlier run. */
export const freshId = ({ call, live }: Attempt): string => {
  if (call.ordinal === undefined) {
    call.ordinal = 0
    for (const { done, json } of live.records.inside?.get(call.id)?.values() ?? []) {
      const record = done ?? (json === undefined ? undefined : Result.getOrUndefined(decodeDone(json)))
      if (record?._tag !== "Call" && record?._tag !== "Ask") continue
      live.turn.callIds.add(record.id)
      call.ordinal = Math.max(call.ordinal, Number(record.id.slice(call.id.length + 1)) || 0)
    }
  }
  let id: string
  // A model may make an id that looks like this.
  do id = `${call.id}/${++call.ordinal}`
  while (live.turn.callIds.has(id))
  live.turn.callIds.add(id)
  return id
}

/** Gives the place of a sub-agent the record that an earlier version kept of it, if there is one left. */
export const adopt = ({ call, live }: Attempt, place: string, agent: string): void => {
  const records = live.records.inside?.get(call.id)
  if (records === undefined || records.has(place)) return
  for (const [otherPlace, record] of records) {
    if (!otherPlace.startsWith(earlier) || record.done?._tag !== "Child" || record.done.agent !== agent) continue
    records.delete(otherPlace)
    records.set(place, record)
    return
  }
}

/** The slot of the journal that keeps a sub-agent, if there is a journal. */
export const journalSlot = ({ call, live }: Attempt, place: string): string | undefined =>
  live.records.isJournaled ? `${prefixOf(live.records)}${slotOf(call.id, place)}` : undefined
