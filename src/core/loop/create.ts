/** Makes a run: its thread, its session, its state, and the records that the loop keeps. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Attached from "../../support/effect/attached.ts"
import { tunnel } from "../../support/effect/tunnel.ts"
import { Approvals } from "../Approval.ts"
import { absent, ChatModel, type ModelSession, open as openSession, type Service } from "../ChatModel.ts"
import type { UnknownOutcome } from "../Checkpoint.ts"
import { IdGenerator } from "../IdGenerator.ts"
import type { Thread } from "../Journal.ts"
import { fromUnknown, type Json } from "../Json.ts"
import { isPartial, type Message } from "../Message.ts"
import { MessageLog } from "../MessageLog.ts"
import type { ModelError } from "../ModelError.ts"
import type { Input, RunOptions } from "../runOptions.ts"
import { zero } from "../Usage.ts"
import { type RunBeginning, callProblem, fail, isResume, openThread, prepare } from "./beginning.ts"
import { reopened } from "./calls/calls.ts"
import type { CompiledAgent } from "./definition.ts"
import type { Hub } from "./hub.ts"
import {
  type Control,
  half,
  type Inside,
  type Live,
  type OpenCall,
  type Origin,
  type OwnRun,
  type Recorder,
  type Records,
  type Turn
} from "./live.ts"
import { openCallId } from "./program.ts"
import { divide, forgetOthers, ofEarlier } from "./records/inside.ts"
import { charge, note, noteShared, prefixOf } from "./records/journal.ts"
import type { SealedThread } from "./records/seal.ts"
import * as Store from "./records/store.ts"
import { emit } from "./report.ts"
import { call, makeNextTurn } from "./turn.ts"
import { makeMeasure } from "./window.ts"
import { countUsage, waitedFor } from "./work.ts"

export interface Place {
  readonly runId: string
  readonly hub: Hub
  readonly control: Control | undefined
  readonly parent: Live | undefined
  /** The call of the parent that the run is inside of. */
  readonly under?: OpenCall | undefined
  /** The slot that keeps the run in the journal. */
  readonly place?: string | undefined
  /** True for the first work of an uninterruptible fiber: the run itself can be interrupted. */
  readonly isFresh?: boolean | undefined
  /** Called with the run as soon as it exists. */
  readonly onLive?: ((live: Live) => void) | undefined
}

type OpenThread = SealedThread & { readonly lease: unknown }

/** Reads the model, which a program may lack. The types ask for one, but Node runs code without checking them. */
const readModel = Effect.fnUntraced(function* (compiled: CompiledAgent) {
  const model = Option.getOrUndefined(yield* Effect.serviceOption(ChatModel))
  if (model !== undefined || compiled.definition.program !== undefined) return model
  const problem =
    'a run needs a model; provide one, such as ChatModels.resolve("provider:model") of effect-deepagents/models'
  return yield* fail(compiled, { _tag: "InvalidInput", problem })
})

/** Makes a run: reads its input, reports its start, opens its session. It opens them in `scope`. */
export const create = Effect.fnUntraced(function* (
  compiled: CompiledAgent,
  input: Input,
  options: RunOptions,
  place: Place,
  origin: Origin,
  scope: Scope.Scope
) {
  const problem = callProblem(input, options)
  if (problem !== undefined) return yield* fail(compiled, { _tag: "InvalidInput", problem })
  const isProgram = compiled.definition.program !== undefined
  const model = yield* readModel(compiled)
  const { parent } = place
  const { decisions: inherited = [] } = parent ?? {}
  const threadId = options.threadId ?? parent?.run.threadId
  const opened: OpenThread | undefined =
    options.threadId === undefined
      ? undefined
      : yield* Scope.provide(openThread(compiled, options.threadId, input), scope)
  const begun = yield* Effect.fromResult(prepare(compiled, input, options, opened?.thread, inherited))
  const { inside, state: slots } = divide(begun.state)
  const beginning = { ...begun, state: slots }
  const records = yield* makeRecords(place, opened, threadId, beginning, inside)
  yield* reportStart(compiled, origin, model, threadId, opened?.thread)
  const opening = Scope.provide(openSession(model ?? absent), scope)
  // A program may never ask a model.
  const session = isProgram ? openLater(yield* Effect.cached(opening)) : yield* opening
  const state = yield* openState(compiled, beginning, parent, origin, records)
  const beganAt = origin.clock.currentTimeMillisUnsafe()
  const makeId = yield* IdGenerator
  const approvals = Option.getOrUndefined(yield* Effect.serviceOption(Approvals))
  const { traces, messages, open, suspension, turn } = beginning
  const run = makeRun(
    compiled,
    beginning,
    place,
    origin,
    { model, threadId, records, state, beganAt, scope },
    () => live
  )
  const live: Live = {
    origin,
    run,
    compiled,
    parent,
    under: place.under,
    control: place.control,
    makeId,
    approvals,
    decisions: [...(suspension?.decisions ?? []), ...inherited],
    unknownOutcome: isResume(input) ? input.unknownOutcome : inheritOutcome(parent?.unknownOutcome),
    firstNew: messages.length,
    turn: makeTurn(compiled, run, origin, session),
    round: {
      batch: open.map((one) => reopened(one, traces)),
      resumed: turn && { turn, traces },
      suspension,
      gating: undefined,
      isMarked: false
    },
    records,
    clock: { beganAt, waits: undefined }
  }
  run[half] = live
  // Records of calls that are no longer open are dropped with these calls.
  if (records.inside !== undefined) {
    const isTrusted = opened?.problem === undefined
    forgetOthers(live, openIds(compiled, beginning, isTrusted, isResume(input)))
  }
  yield* repairThread(live, opened)
  return { live, beginning, lease: opened?.lease }
})

/** The ids of all open work: calls of a turn, or the question of a program that resumes or keeps its records. */
const openIds = (
  { definition: { program } }: CompiledAgent,
  { messages, open }: RunBeginning,
  isTrusted: boolean,
  isResumed: boolean
): ReadonlyArray<string> => {
  if (program === undefined || !(isResumed || (program.keeps && isTrusted))) return open.map(({ id }) => id)
  const id = openCallId(program, messages)
  return id === undefined ? [] : [id]
}

interface Parts extends Pick<OwnRun, "model" | "threadId" | "state" | "scope"> {
  readonly records: Records
  readonly beganAt: number
}

/** Makes the public half of a run. A literal: V8 turns objects that grow piece by piece into hash tables. */
const makeRun = (
  compiled: CompiledAgent,
  { messages, rounds, spent, usage }: RunBeginning,
  { parent }: Place,
  origin: Origin,
  { beganAt, model, records, scope, state, threadId }: Parts,
  live: () => Live
): OwnRun => ({
  [half]: undefined,
  [Attached.table]: undefined,
  agent: compiled.definition.name,
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
  warn: (code, message, data) =>
    emit({ origin }, { _tag: "Warning", code, message, ...(data === undefined ? {} : { data: fromUnknown(data) }) }),
  custom: (name, payload) =>
    Effect.suspend(() =>
      origin.hub.isWatched ? emit({ origin }, { _tag: "Custom", name, payload: fromUnknown(payload) }) : Effect.void
    ),
  compacted: (tokensBefore, tokensAfter) =>
    Effect.suspend(() => {
      if (parent === undefined) note(records, { _tag: "Compaction", tokensBefore, tokensAfter })
      return emit({ origin }, { _tag: "Compacted", tokensBefore, tokensAfter })
    }),
  call: (request) => call(live(), request),
  waited: (callId) => Effect.sync(() => waitedFor(live(), callId ?? "")),
  charge: (work) => charge(live(), work),
  count: (usage) => Effect.sync(() => countUsage(live(), usage)),
  relay: (event) => emit({ origin }, event)
})

/** Makes the journal of a run (its own or its parent's), its log and its records of open calls. */
const makeRecords = Effect.fnUntraced(function* (
  { parent, place }: Place,
  opened: OpenThread | undefined,
  threadId: string | undefined,
  { messages, suspension }: RunBeginning,
  inside: Inside | undefined
) {
  const recorder: Recorder | undefined =
    opened === undefined || threadId === undefined
      ? parent?.records.journal?.recorder
      : {
          thread: opened.thread,
          threadId,
          entries: [],
          spent: undefined,
          isSettled: false,
          lock: Semaphore.makeUnsafe(1)
        }
  const children = suspension?.children
  return {
    journal: recorder && { recorder, heldEntries: undefined },
    isJournaled: recorder !== undefined && (parent === undefined || place !== undefined),
    place,
    inside: inside ?? (children === undefined ? undefined : ofEarlier(children)),
    log: yield* MessageLog,
    logged: messages.length
  } satisfies Records
})

const makeTurn = (compiled: CompiledAgent, run: OwnRun, origin: Origin, session: ModelSession): Turn => ({
  next: makeNextTurn(run, compiled, session, makeMeasure({ origin, run })),
  systemPrompt: "",
  toolset: compiled.toolset,
  tools: compiled.toolset.definitions,
  toolLists: undefined,
  callIds: callIdsIn(run.messages),
  messageId: undefined,
  partial: undefined,
  usageSinceRound: zero
})

const callIdsIn = (messages: ReadonlyArray<Message>): Set<string> => {
  const ids = new Set<string>()
  for (const message of messages) {
    if (message.role !== "ai") continue
    for (const { id } of message.toolCalls) ids.add(id)
    for (const { id } of message.malformedToolCalls) ids.add(id)
  }
  return ids
}

const reportStart = Effect.fnUntraced(function* (
  { definition }: CompiledAgent,
  origin: Origin,
  model: Service | undefined,
  threadId: string | undefined,
  thread: Thread | undefined
) {
  yield* emit(
    { origin },
    {
      _tag: "RunStarted",
      agent: definition.name,
      ...(model === undefined ? {} : { model: model.modelId, provider: model.provider }),
      ...(threadId === undefined ? {} : { threadId })
    }
  )
  if (thread?.checkpoint === undefined || threadId === undefined) return
  const last = thread.checkpoint.messages.at(-1)
  const partial = isPartial(last) ? { partial: last } : {}
  yield* emit({ origin }, { _tag: "CheckpointLoaded", threadId, step: thread.step, ...partial })
})

/** Notes the repairs of a thread whose signature does not hold, and warns of them. */
const repairThread = Effect.fnUntraced(function* (live: Live, opened: OpenThread | undefined) {
  for (const entry of opened?.repairs ?? []) note(live.records, entry)
  if (opened?.problem === undefined) return
  const message = `The signature of this thread does not hold: ${opened.problem}. Its approvals for good no longer count.`
  yield* emit(live, { _tag: "Warning", code: "tampered", message })
})

const openLater = (opening: Effect.Effect<ModelSession, ModelError>): ModelSession => ({
  nextTurn: (request) => Stream.unwrap(Effect.map(opening, (session) => session.nextTurn(request)))
})

/** Makes the state of a run. Changes are reported, and noted if the journal keeps them. */
const openState = (
  compiled: CompiledAgent,
  { state }: RunBeginning,
  parent: Live | undefined,
  origin: Origin,
  records: Records
) => {
  const toError = ({ error, slot }: Store.Unread) =>
    fail(compiled, { _tag: "InvalidState", slot, problem: error.message })
  const onChange = (slot: string, encode: () => Json, isShared: boolean) => {
    const isNoted = isShared ? records.journal !== undefined : records.isJournaled
    if (!isNoted && !origin.hub.isWatched) return Effect.void
    const value = encode()
    if (isNoted && isShared) noteShared(records, { _tag: "State", slot, value })
    else if (isNoted) note(records, { _tag: "State", slot: `${prefixOf(records)}${slot}`, value })
    return emit({ origin }, { _tag: "StateChanged", slot, value })
  }
  const store = Store.make(state, compiled.slots, parent?.run.state.shared, onChange, (one) => tunnel(toError(one)))
  return Effect.mapError(Effect.fromResult(store), toError)
}

/** A function that looks outcomes up knows its own run, not its sub-agents. */
const inheritOutcome = (unknownOutcome: UnknownOutcome | undefined): "tell" | "ask" =>
  unknownOutcome === "ask" ? "ask" : "tell"
