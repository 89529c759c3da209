/** Makes a run: its thread, its session and its state, what middleware sees of it and what the loop keeps. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Attached from "../../support/effect/attached.ts"
import { tunnel } from "../../support/effect/tunnel.ts"
import { Approvals } from "../Approval.ts"
import { absent, ChatModel, type ModelSession, open as openSession } from "../ChatModel.ts"
import type { UnknownOutcome } from "../Checkpoint.ts"
import { IdGenerator } from "../IdGenerator.ts"
import { fromUnknown, type Json } from "../Json.ts"
import { type HumanMessage, isPartial, type Message } from "../Message.ts"
import { MessageLog } from "../MessageLog.ts"
import type { ModelError } from "../ModelError.ts"
import type { Input, RunOptions } from "../runOptions.ts"
import { zero } from "../Usage.ts"
import { type Beginning, invalid, isResume, openThread, prepare } from "./beginning.ts"
import * as Broker from "./broker.ts"
import { reopened } from "./calls.ts"
import type { Compiled } from "./definition.ts"
import type { Hub } from "./hub.ts"
import { divide, forgetOthers, ofEarlier } from "./inside.ts"
import {
  charge,
  type Control,
  emit,
  half,
  type Live,
  note,
  noteShared,
  type OpenCall,
  type Origin,
  type OwnRun,
  prefixOf,
  type Recorder,
  waited,
  type Writer
} from "./live.ts"
import { askedIn } from "./program.ts"
import * as Store from "./store.ts"
import { call, makeNextTurn } from "./turn.ts"
import { makeMeasure } from "./window.ts"

/** The surroundings of a run: whoever watches it, whoever steers it, and the run above it. */
export interface Place {
  readonly runId: string
  readonly hub: Hub
  readonly control: Control | undefined
  readonly parent: Live | undefined
  /** The call of the parent that it is inside of, and the slot of the journal that keeps it. */
  readonly under?: OpenCall | undefined
  readonly place?: string | undefined
  /** Set for a run that is the first thing of a fiber that can't be interrupted until it is under way. */
  readonly isFresh?: boolean | undefined
  /** Is called with the run as soon as it exists. */
  readonly onLive?: ((live: Live) => void) | undefined
}

/** The ids of all calls of a conversation. */
const callIdsIn = (messages: ReadonlyArray<Message>): Set<string> => {
  const ids = new Set<string>()
  for (const message of messages) {
    if (message.role !== "ai") continue
    for (const { id } of message.toolCalls) ids.add(id)
    for (const { id } of message.malformedToolCalls) ids.add(id)
  }
  return ids
}

const doors: Live["doors"] = { call: Broker.call, ask: Broker.ask, step: Broker.step }

/** Creates a run: reads its input, reports its start, opens its session. What it opens is closed with `scope`. */
export const create = Effect.fnUntraced(function* (
  compiled: Compiled,
  input: Input,
  options: RunOptions,
  { control, parent, place, under }: Place,
  origin: Origin,
  scope: Scope.Scope
) {
  const threadId = options.threadId ?? parent?.run.threadId
  const opened =
    options.threadId === undefined
      ? undefined
      : yield* Scope.provide(openThread(compiled, options.threadId, input), scope)
  const thread = opened?.thread
  const recorder: Recorder | undefined =
    thread === undefined || threadId === undefined
      ? parent?.journal?.recorder
      : { thread, threadId, entries: [], spent: undefined, isSettled: false, lock: Semaphore.makeUnsafe(1) }
  const journal: Writer | undefined = recorder && { recorder, held: undefined }
  const begun = yield* Effect.fromResult(prepare(compiled, input, options, thread, parent?.decisions ?? []))
  const { inside, state: slots } = divide(begun.state)
  const children = begun.suspension?.children
  const records = inside ?? (children === undefined ? undefined : ofEarlier(children))
  const beginning = { ...begun, state: slots }
  const { left, messages, open, rounds, spent, suspension, turn, usage } = beginning
  const { name, program } = compiled.definition
  const model = program === undefined ? yield* ChatModel : Option.getOrUndefined(yield* Effect.serviceOption(ChatModel))
  const makeId = yield* IdGenerator
  const log = yield* MessageLog
  const approvals = Option.getOrUndefined(yield* Effect.serviceOption(Approvals))
  yield* emit(
    { origin },
    {
      _tag: "RunStarted",
      agent: name,
      ...(model === undefined ? {} : { model: model.modelId, provider: model.provider }),
      ...(threadId === undefined ? {} : { threadId })
    }
  )
  if (thread?.checkpoint !== undefined && threadId !== undefined) {
    const last = thread.checkpoint.messages.at(-1)
    yield* emit(
      { origin },
      {
        _tag: "CheckpointLoaded",
        threadId,
        step: thread.step,
        ...(isPartial(last) ? { partial: last } : {})
      }
    )
  }
  const opening = Scope.provide(openSession(model ?? absent), scope)
  // A program may never ask a model.
  const session = program === undefined ? yield* opening : later(yield* Effect.cached(opening))
  const state = yield* openState(compiled, beginning, parent, { origin, journal, place })
  const beganAt = origin.clock.currentTimeMillisUnsafe()
  // Literals: objects that are put together piece by piece become hash tables, larger and slower.
  const run: OwnRun = {
    [half]: undefined,
    [Attached.table]: undefined,
    agent: name,
    path: origin.path,
    runId: origin.runId,
    threadId,
    model,
    round: rounds,
    offered: compiled.toolset.definitions,
    messages,
    usage,
    spent,
    state,
    parent: parent?.run,
    startedAt: parent?.run.startedAt ?? beganAt,
    scope,
    depth: parent === undefined ? 0 : parent.run.depth + 1,
    warn: (code, message) => Effect.suspend(() => emit(live, { _tag: "Warning", code, message })),
    custom: (event, payload) =>
      Effect.suspend(() =>
        origin.hub.watched ? emit(live, { _tag: "Custom", name: event, payload: fromUnknown(payload) }) : Effect.void
      ),
    compacted: (tokensBefore, tokensAfter) =>
      Effect.suspend(() => {
        if (parent === undefined) note(live, { _tag: "Compaction", tokensBefore, tokensAfter })
        return emit(live, { _tag: "Compacted", tokensBefore, tokensAfter })
      }),
    call: (request) => call(live, request),
    waited: (callId) => Effect.sync(() => waited(live, callId ?? "")),
    charge: (work) => Effect.suspend(() => charge(live, work))
  }
  const live: Live = {
    origin,
    run,
    compiled,
    parent,
    control,
    makeId,
    approvals,
    nextTurn: makeNextTurn(run, compiled, session, makeMeasure({ origin, run })),
    systemPrompt: "",
    tools: compiled.toolset.definitions,
    toolset: compiled.toolset,
    given: undefined,
    beganAt,
    firstNew: messages.length,
    callIds: callIdsIn(messages),
    partial: undefined,
    batch: open.map((one) => reopened(one, left)),
    usageSinceRound: zero,
    journal,
    log,
    logged: messages.length,
    resumed: turn && { turn, left },
    suspension,
    place,
    under,
    inside: records,
    waits: undefined,
    gating: undefined,
    isMarked: false,
    isCounted: false,
    doors,
    decisions: [...(suspension?.decisions ?? []), ...(parent?.decisions ?? [])],
    unknownOutcome: isResume(input) ? input.unknownOutcome : inherited(parent?.unknownOutcome)
  }
  run[half] = live
  // Records of calls that are no longer open are given up with them.
  if (records !== undefined)
    forgetOthers(live, program !== undefined && isResume(input) ? idOf(askedIn(messages)) : open.map(({ id }) => id))
  for (const entry of opened?.repairs ?? []) note(live, entry)
  if (opened?.problem !== undefined) {
    const message = `The signature of this thread does not hold: ${opened.problem}. What was approved for good in it is asked again.`
    yield* emit(live, { _tag: "Warning", code: "tampered", message })
  }
  return { live, beginning, held: opened?.held }
})

/** A session that is opened when it is first asked. */
const later = (opening: Effect.Effect<ModelSession, ModelError>): ModelSession => ({
  nextTurn: (request) => Stream.unwrap(Effect.map(opening, (session) => session.nextTurn(request)))
})

const idOf = (message: HumanMessage | undefined): ReadonlyArray<string> => (message === undefined ? [] : [message.id])

/** The state of a run. Changes are reported, and noted where a thread keeps them. */
const openState = (
  compiled: Compiled,
  { state }: Beginning,
  parent: Live | undefined,
  from: Pick<Live, "origin" | "journal" | "place">
) => {
  const unread = ({ error, slot }: Store.Unread) =>
    invalid(compiled, { _tag: "InvalidState", slot, problem: error.message })
  const onChange = (slot: string, encode: () => Json, isShared: boolean) => {
    const isKept = from.journal !== undefined && (isShared || parent === undefined || from.place !== undefined)
    if (!isKept && !from.origin.hub.watched) return Effect.void
    const value = encode()
    if (isKept && isShared) noteShared(from, { _tag: "State", slot, value })
    else if (isKept) note(from, { _tag: "State", slot: `${prefixOf(from)}${slot}`, value })
    return emit(from, { _tag: "StateChanged", slot, value })
  }
  const made = Store.make(state, compiled.slots, parent?.run.state.shared, onChange, (one) => tunnel(unread(one)))
  return Effect.mapError(Effect.fromResult(made), unread)
}

/** A function that looks outcomes up knows those of the run that it was given to, not those of sub-agents. */
const inherited = (unknownOutcome: UnknownOutcome | undefined): "tell" | "ask" =>
  unknownOutcome === "ask" ? "ask" : "tell"
