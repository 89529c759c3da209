/** Plans the work for an input or a decision on a thread: a run, or the stored outcome. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Agent from "../../core/Agent.ts"
import { AgentError } from "../../core/AgentError.ts"
import type { Decision, Request } from "../../core/Approval.ts"
import * as Checkpoint from "../../core/Checkpoint.ts"
import type { Journal, Thread } from "../../core/Journal.ts"
import { Json } from "../../core/Json.ts"
import { type HumanMessage, makeId, type Message } from "../../core/Message.ts"
import type { InvalidEncoding } from "../../core/schema/encoding.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"
import { StopReason } from "../../core/StopReason.ts"
import { zero } from "../../core/Usage.ts"
import { loadThread, makeJournal, persistent } from "../../sessions/journal.ts"
import { defined } from "../../support/json/defined.ts"
import { Conflict } from "../Conflict.ts"
import type { Outcome } from "../Outcome.ts"
import type { Codecs } from "./codecs.ts"
import { orNothing } from "./eventFeed.ts"
import { inputIdOf, isInput } from "./inputs.ts"
import type { RunOutcome } from "./outcome.ts"
import { makeUnanswered, readSettled } from "./outcomes.ts"

/**
 * The reason to continue a thread: an input, or decisions on its pending requests. Without decisions, the requests are repeated.
 * `message` is the input that waits for them.
 */
export type Push =
  | { readonly _tag: "Input"; readonly message: HumanMessage }
  | {
      readonly _tag: "Decisions"
      readonly decisions: ReadonlyArray<Decision>
      readonly message?: HumanMessage | undefined
    }

/** The remaining work: a run on the loaded journal, or none. */
export type Plan<O> =
  | { readonly _tag: "Run"; readonly input: Agent.Input; readonly journal: Journal["Service"] }
  | { readonly _tag: "Settled"; readonly outcome: Outcome<O> }

const parseJson = Schema.decodeUnknownResult(Schema.fromJsonString(Json))

const stopReasons: ReadonlySet<string> = new Set(StopReason.literals)

const isStopReason = (outcome: string): outcome is StopReason => stopReasons.has(outcome)

/** The stored outcome of a thread that a person stopped. Another runner resumes after all other interruptions. */
const stopped = "stopped"

/**
 * Stores that a person stopped the thread. A run that was stopped before its first write is stored with its input, so that it
 * does not start again. A run that another runner finished meanwhile stays unchanged.
 */
export const markStopped = Effect.fnUntraced(function* (
  store: Service,
  agent: string,
  threadId: string,
  { message }: Push
): Effect.fn.Return<void, SessionError> {
  const { append, checkpoint, ended } = yield* makeJournal(store).open(threadId)
  const isNew = message !== undefined && !(checkpoint?.messages ?? []).some(({ id }) => id === message.id)
  const end = endOf(ended)
  if (!isNew && end !== undefined && end !== "suspended") return
  const runId = makeId()
  const step = isNew || checkpoint === undefined ? { usage: zero, rounds: 0, spent: undefined } : checkpoint
  const { rounds, spent, usage } = step
  yield* append([
    { _tag: "RunStarted", runId, agent },
    ...(isNew ? [{ _tag: "Message", message } as const] : []),
    { _tag: "RunSettled", runId, outcome: stopped },
    { _tag: "Step", usage, rounds, ...defined({ spent }) }
  ])
})

/** The end of the last run. Failed runs, and those without a person's interruption, have none and are resumed. */
const endOf = (outcome: string | undefined): RunOutcome | undefined =>
  outcome === stopped ? "interrupted" : outcome !== undefined && isStopReason(outcome) ? outcome : undefined

/** Finds the ids of requests that never were in the thread. A decision on any other is late, not wrong. */
const findUnknown = Effect.fnUntraced(function* (store: Service, threadId: string, ids: ReadonlySet<string>) {
  const missing = new Set(ids)
  let from: string | undefined
  for (;;) {
    const { entries, next } = yield* persistent(store.load(threadId, { from }))
    for (const { entry } of entries) if (entry._tag === "Request") missing.delete(entry.request.id)
    if (missing.size === 0 || next === null) return missing
    from = next
  }
})

/**
 * The pending requests of a thread. After a person stopped it, none. A run that crashed while it resumed still waits, because
 * its decisions are stored with the first call.
 */
const pendingIn = (
  checkpoint: Checkpoint.Checkpoint | undefined,
  stopReason: RunOutcome | undefined
): Effect.Effect<ReadonlyArray<Request>, InvalidEncoding> =>
  checkpoint === undefined || (stopReason !== undefined && stopReason !== "suspended")
    ? Effect.succeed([])
    : Checkpoint.pending(checkpoint)

/** The content of a message as stored JSON. */
const contentOf = ({ content }: Message): Json => Result.getOrElse(parseJson(JSON.stringify(content)), () => null)

/** Reports whether two messages have the same content. */
const isSame = (left: Message, right: Message): boolean => canonical(contentOf(left)) === canonical(contentOf(right))

/** The message with the open calls: the last turn, or the input of a program. */
const lastTurn = (messages: ReadonlyArray<Message>): Message | undefined =>
  messages.findLast((message) => message.role !== "tool")

/**
 * Plans a push, so that repeating it has no effect. A new input runs, an unsettled one is resumed, and the outcome of a settled
 * one is read.
 */
export const plan = Effect.fnUntraced(function* <O, E, R>(
  store: Service,
  agent: Agent.Agent<O, E, R>,
  codecs: Codecs<O, E>,
  threadId: string,
  push: Push,
  unknownOutcome?: (turn: Message | undefined) => Checkpoint.UnknownOutcome
): Effect.fn.Return<Plan<O>, AgentError | Conflict> {
  const invalid = (problem: string) => new AgentError({ agent: agent.name, reason: { _tag: "InvalidInput", problem } })
  const inThread = <A>(effect: Effect.Effect<A, SessionError>) =>
    Effect.mapError(effect, (error) => new AgentError({ agent: agent.name, reason: { _tag: "Thread", error } }))

  const thread: Thread = yield* inThread(makeJournal(store).open(threadId))
  // The run gets the loaded thread.
  const journal: Journal["Service"] = { open: () => Effect.succeed(thread) }
  const { checkpoint, ended } = thread
  const stopReason = endOf(ended)
  const messages = checkpoint?.messages ?? []
  const run = (input: Agent.Input): Plan<O> => ({ _tag: "Run", input, journal })
  const resume = (decisions: ReadonlyArray<Decision>) =>
    run(
      Checkpoint.resume(undefined, {
        decisions,
        unknownOutcome: unknownOutcome?.(lastTurn(messages))
      })
    )
  const pending = yield* Effect.mapError(pendingIn(checkpoint, stopReason), (error) => invalid(error.message))
  const settle = (first: number, end: number, reason: RunOutcome) => {
    const totals = checkpoint ?? { usage: zero, rounds: 0 }
    const outcome =
      reason === "suspended" || reason === "interrupted"
        ? Effect.succeed(makeUnanswered<O>(messages.slice(first), reason, pending, totals))
        : readSettled(agent.name, codecs, messages.slice(first, end), reason, totals)
    return Effect.map(outcome, (settled): Plan<O> => ({ _tag: "Settled", outcome: settled }))
  }

  const { message } = push
  const index = message === undefined ? -1 : messages.findIndex(({ id }) => id === message.id)
  const behind = index === -1 ? -1 : messages.findIndex((one, at) => at > index && isInput(one))
  if (behind !== -1) return yield* settle(index, behind, "completed")

  if (push._tag === "Input") {
    const storedMessage = messages[index]
    if (storedMessage === undefined) return run(push.message)
    if (!isSame(storedMessage, push.message)) return yield* new Conflict({ threadId, inputId: inputIdOf(push.message) })
    return stopReason === undefined ? resume([]) : yield* settle(index, messages.length, stopReason)
  }

  const first = Math.max(0, messages.findLastIndex(isInput))
  const waiting = new Set(pending.map(({ id }) => id))
  const decisions = push.decisions.filter(({ id }) => waiting.has(id))
  const unmatchedIds = new Set(push.decisions.flatMap(({ id }) => (waiting.has(id) ? [] : [id])))
  if (unmatchedIds.size > 0) {
    const [unknown] = yield* inThread(findUnknown(store, threadId, unmatchedIds))
    if (unknown !== undefined) return yield* invalid(`nothing waits for a decision with the id "${unknown}"`)
  }
  if (checkpoint === undefined) return yield* invalid("there is nothing to resume in this thread")
  const isAskedAgain = push.decisions.length === 0 && stopReason === "suspended"
  if (stopReason === undefined || decisions.length > 0 || isAskedAgain) return resume(decisions)
  return yield* settle(first, messages.length, stopReason)
})

/** Lists the pending requests of a stored thread. A missing thread has none. */
export const pendingOf = (
  store: Service,
  threadId: string
): Effect.Effect<ReadonlyArray<Request>, SessionError | InvalidEncoding> =>
  Effect.flatMap(orNothing(loadThread(store, threadId), undefined), (thread) =>
    thread === undefined ? Effect.succeed([]) : pendingIn(thread.checkpoint, endOf(thread.ended))
  )
