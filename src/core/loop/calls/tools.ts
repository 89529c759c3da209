/** Runs the calls of a round, and answers them in the history. */
import * as Effect from "effect/Effect"
import type { Request } from "../../Approval.ts"
import type * as Message from "../../Message.ts"
import { type Suspension, suspension } from "../../thread/suspension.ts"
import type * as ToolOutput from "../../ToolOutput.ts"
import type { Live, OpenCall, Turn } from "../live.ts"
import { forget } from "../records/inside.ts"
import { record, settle, hold, release, save } from "../records/journal.ts"
import { register, sourcesOf, withSources } from "../sources.ts"
import { countWork } from "../work.ts"
import { answer, type Call, malformed, resolve, untouched } from "./calls.ts"
import { execute } from "./execute.ts"
import { gate, isOn, markGated } from "./gate.ts"
import { isRepeatable } from "./gatekeepers.ts"

export interface Round {
  readonly pending: ReadonlyArray<Request>
  readonly direct: ToolOutput.ToolOutput | undefined
  readonly failed: ReadonlySet<string>
  /** Calls that failed and may go better the next time. */
  readonly mayPass: ReadonlySet<string>
}

/**
 * Runs all calls of a turn that are not answered: every one resolved, decoded and gated before the first runs; answered
 * in call order.
 */
export const round = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage) {
  const open = new Map<string, OpenCall>()
  for (const call of live.round.batch) open.set(call.id, call)
  const isOpen = ({ id }: { readonly id: string }) => open.has(id)
  /** Done and reported before this run resumed the turn. */
  const findDone = ({ id }: { readonly id: string }): Call | undefined => {
    const call = open.get(id)
    return call?.outcome && { ...call, tool: undefined, wasDone: true, prepared: undefined }
  }
  const calls: Array<Call> = []
  for (const call of message.toolCalls) if (isOpen(call)) calls.push(findDone(call) ?? (yield* resolve(live, call)))
  const pending =
    live.compiled.sources.length === 0 &&
    live.compiled.rewrites.length === 0 &&
    !live.turn.toolset.asks &&
    live.round.resumed === undefined
      ? []
      : yield* gate(live, message, calls)
  release(live.records)
  if (pending.length > 0) {
    // These stay open for the run that is resumed with decisions on them.
    live.round.batch = []
    return suspended(live, pending)
  }
  // From here on the calls are begun. A turn that is stored without a suspension says so: it is stored only now.
  if (live.round.suspension === null) yield* markBegun(live, message, calls)
  countWork(live, "toolCalls", calls.filter(isBegun).length)
  // Where all calls only read, the round is stored in one go: cut off, its turn is asked for again.
  if (live.compiled.counts || !onlyReads(live.turn, message)) yield* save(live)
  const all = [...calls, ...message.malformedToolCalls.filter(isOpen).map((call) => findDone(call) ?? malformed(call))]
  live.round.batch = all
  yield* runAll(
    live,
    all.filter((call) => call.wasDone !== true)
  )
  if (all.some((call) => call.suspended !== undefined)) return yield* suspendInside(live, message, all)
  yield* answerBatch(live)
  yield* resolved(live)
  const first = all.find((call) => !hasFailed(call) && outputOf(call)?.returnDirect === true)
  return {
    pending,
    direct: first && outputOf(first),
    failed: idsOf(all, hasFailed),
    mayPass: idsOf(all, mayPass)
  } satisfies Round
})

/**
 * Notes which calls of a turn begin. Where gates answered some of them, the state keeps these answers until the turn is
 * over: a run that resumes it must neither run those calls, nor say that they may have begun.
 */
const markBegun = (live: Live, message: Message.AiMessage, calls: ReadonlyArray<Call>): Effect.Effect<void> => {
  const answers = live.records.isJournaled ? answersOf(live, calls) : []
  if (answers.length === 0) {
    if (!live.round.isMarked) return Effect.void
    live.round.isMarked = false
    return live.run.state.set(suspension, null)
  }
  live.round.isMarked = true
  return live.run.state.set(suspension, {
    messageId: message.id,
    requests: [],
    decisions: [],
    waiting: [],
    answers,
    unknown: calls.flatMap(({ id, outcome }) => (outcome === undefined ? [id] : []))
  })
}

const answersOf = (live: Live, calls: ReadonlyArray<Call>): ReadonlyArray<Message.ToolMessage> =>
  calls.flatMap((call) => (call.outcome === undefined || call.wasDone === true ? [] : [answer(live, call)]))

/** True for a call that is about to begin, and that no earlier run began. */
const isBegun = ({ trace, outcome }: Call): boolean => outcome === undefined && trace === undefined

/** Reports whether all calls of a turn can be made again. */
const onlyReads = ({ toolset }: Turn, { malformedToolCalls, toolCalls }: Message.AiMessage): boolean =>
  malformedToolCalls.length === 0 &&
  toolCalls.every(({ name }) => toolset.tools.get(name)?.annotations.readOnly === true)

const outputOf = ({ outcome }: Call): ToolOutput.ToolOutput | undefined =>
  outcome !== undefined && "output" in outcome ? outcome.output : undefined

const hasFailed = (call: Call): boolean => outputOf(call)?.isError !== false

const mayPass = ({ outcome }: Call): boolean =>
  outcome !== undefined && "error" in outcome && outcome.error.isRetryable === true

/** No calls: a run keeps the results of its last round, so most of them share this. */
export const none: ReadonlySet<string> = new Set()

const idsOf = (calls: ReadonlyArray<Call>, is: (call: Call) => boolean): ReadonlySet<string> => {
  const those = calls.filter(is)
  return those.length === 0 ? none : new Set(those.map(({ id }) => id))
}

/**
 * A suspension whose turn is resumed: of every call without an answer, nobody knows from here on whether it took
 * effect. Decisions on a call itself are carried out now; decisions inside a call, and on repeatable calls, stay in
 * case this run is cut off.
 */
const resumed = (live: Live, before: Suspension, all: ReadonlyArray<Call>): Suspension | null => {
  const unrepeatableIds = new Set(all.flatMap(({ id, tool }) => (tool !== undefined && isRepeatable(tool) ? [] : [id])))
  const requests = before.requests.filter((request) => !isOn(live, unrepeatableIds, request))
  const answers = [...before.answers, ...answersOf(live, all)]
  if (requests.length + answers.length === 0) return null
  const requestIds = new Set(requests.map(({ id }) => id))
  return {
    ...before,
    requests,
    decisions: before.decisions.filter(({ id }) => requestIds.has(id)),
    waiting: [],
    answers,
    unknown: all.flatMap(({ id, outcome }) => (outcome === undefined ? [id] : []))
  }
}

/** Runs calls. The suspension of the run ends when the first call begins. */
const runAll = Effect.fnUntraced(function* (live: Live, all: ReadonlyArray<Call>) {
  if (live.round.suspension !== null) {
    yield* live.run.state.set(suspension, resumed(live, live.round.suspension, all))
    yield* save(live)
  }
  const [only] = all
  yield* all.length === 1 && only !== undefined
    ? execute(live, only)
    : Effect.forEach(all, (call) => execute(live, call), {
        concurrency: live.compiled.definition.toolConcurrency,
        discard: true
      })
})

/** Suspends the run at the first call in which something waits. Answers to calls behind it are kept until it is done. */
const suspendInside = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, all: ReadonlyArray<Call>) {
  const pending = all.flatMap((call) => call.suspended ?? [])
  const first = all.findIndex((call) => call.suspended !== undefined)
  const behind = all.slice(first)
  const decisions = live.round.suspension?.decisions ?? []
  const decided = new Set(decisions.map(({ id }) => id))
  live.round.batch = all.slice(0, first)
  yield* answerBatch(live)
  const endedCalls = behind.filter((call) => call.suspended === undefined)
  for (const call of endedCalls) {
    yield* numberSources(live, call)
    forget(live, call.id)
  }
  yield* live.run.state.set(suspension, {
    messageId: message.id,
    requests: [...(live.round.suspension?.requests ?? []).filter(({ id }) => decided.has(id)), ...pending],
    decisions,
    waiting: behind.flatMap((call) => (call.suspended === undefined ? [] : [call.id])),
    answers: endedCalls.map((call) => answer(live, call)),
    unknown: []
  })
  return suspended(live, pending)
})

/**
 * Ends the round of a run that waits. From here on the suspension in the state is the outcome of the run: it stays if the
 * run fails before its end is stored.
 */
const suspended = (live: Live, pending: ReadonlyArray<Request>): Round => {
  live.round.suspension = null
  live.round.isMarked = false
  return { pending, direct: undefined, failed: none, mayPass: none }
}

/** Puts the answers of a round into the history, in call order. */
export const answerBatch = Effect.fnUntraced(function* (live: Live) {
  release(live.records)
  for (const call of live.round.batch) {
    if (call.answered) continue
    call.answered = true
    if (hasSources(call)) yield* numberSources(live, call)
    record(live, answer(live, call))
    yield* settle(live)
    forget(live, call.id)
  }
  live.round.batch = []
})

/**
 * Leaves the turn of an interrupted run open, if one of its calls is safe to re-run: the next run finds the results of
 * the calls behind it. Returns false if no call is.
 */
export const leaveOpen = Effect.fnUntraced(function* (live: Live) {
  if (live.round.gating !== undefined && live.records.isJournaled) {
    // Stopped while the gates were asked: none of these calls began. They are asked again when the run is resumed.
    yield* markGated(live, live.round.gating)
    release(live.records)
    live.round.batch = []
    return true
  }
  const first = live.round.batch.findIndex((call) => isUnderWay(call) && call.resumes === true)
  const turn = live.run.messages.findLast(({ role }) => role === "ai")
  if (first < 0 || turn === undefined || !live.records.isJournaled) return false
  const behind = live.round.batch.slice(first)
  live.round.batch = live.round.batch.slice(0, first)
  yield* answerBatch(live)
  const waiting = behind.filter((call) => isUnderWay(call) && call.resumes === true)
  const answered = behind.filter((call) => !waiting.includes(call) && (call.started || call.outcome !== undefined))
  yield* live.run.state.set(suspension, {
    messageId: turn.id,
    requests: live.round.suspension?.requests ?? [],
    decisions: live.round.suspension?.decisions ?? [],
    waiting: waiting.map(({ id }) => id),
    answers: answered.map((call) => answer(live, call)),
    unknown: behind.flatMap((call) => (call.trace === "unknown" && !call.started ? [call.id] : []))
  })
  return true
})

const isUnderWay = ({ outcome, started }: OpenCall): boolean => started && outcome === undefined

/** Ends the suspension of a turn whose calls all have their answers. */
export const resolved = (live: Live): Effect.Effect<void> => {
  if (live.round.suspension === null && !live.round.isMarked) return Effect.void
  live.round.suspension = null
  live.round.isMarked = false
  const { state } = live.run
  return Effect.flatMap(state.get(suspension), (left) => (left === null ? Effect.void : state.set(suspension, null)))
}

const hasSources = ({ innerSources, outcome }: OpenCall): boolean =>
  outcome !== undefined && "output" in outcome && (outcome.output.sources ?? innerSources) !== undefined

/** Numbers the sources of a call's output, and lists them behind it. */
const numberSources = (live: Live, call: OpenCall): Effect.Effect<void> => {
  const { outcome } = call
  if (outcome === undefined || "error" in outcome) return Effect.void
  return Effect.map(withSources(live, call, outcome.output), (output) => {
    call.outcome = { output }
  })
}

/** Records a turn. From here on the run owes its calls an answer in every case. */
export const recordTurn = (live: Live, message: Message.AiMessage): void => {
  if (message.toolCalls.length + message.malformedToolCalls.length > 0) {
    live.round.batch = [...message.toolCalls, ...message.malformedToolCalls].map((call) => untouched(call))
    hold(live.records)
  }
  record(live, message)
}

/** Waits for the log and the readers of a turn, and registers its sources. */
export const settleTurn = (live: Live, message: Message.AiMessage): Effect.Effect<void> => {
  const sources = sourcesOf(message)
  return sources.length === 0 ? settle(live) : Effect.andThen(settle(live), register(live, sources))
}

/** Answers all calls of the last turn of which nothing is known, without running any. */
export const decline = Effect.fnUntraced(function* (live: Live, say: (call: OpenCall) => ToolOutput.ToolOutput) {
  for (const call of live.round.batch) call.outcome ??= { output: say(call) }
  yield* answerBatch(live)
})
