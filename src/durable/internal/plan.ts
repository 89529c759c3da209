import * as Effect from "effect/Effect"
import type * as Agent from "../../core/Agent.ts"
import { AgentError } from "../../core/AgentError.ts"
import type { Decision, Request } from "../../core/Approval.ts"
import * as Checkpoint from "../../core/Checkpoint.ts"
import type { InvalidEncoding } from "../../core/InvalidEncoding.ts"
import type { Journal, Thread } from "../../core/Journal.ts"
import type { AiMessage, HumanMessage, Message } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"
import { StopReason } from "../../core/StopReason.ts"
import { zero } from "../../core/Usage.ts"
import { load } from "../../sessions/internal/checkpoint.ts"
import { makeJournal } from "../../sessions/SessionStore.ts"
import type { Ended, Outcome } from "../Outcome.ts"
import { isInput } from "./inputs.ts"
import { settled, unanswered } from "./settled.ts"
import type { Codecs } from "./terms.ts"

/**
 * What a thread is to be brought on by: an input, or decisions on what it waits for (none: it is asked about again), for the
 * sake of the input whose message this is, if that is known.
 */
export type Push =
  | { readonly _tag: "Input"; readonly message: HumanMessage }
  | { readonly _tag: "Decisions"; readonly decisions: ReadonlyArray<Decision>; readonly message?: HumanMessage }

/** What is left to do: a run, which begins with what was read already, or nothing. */
export type Plan<O> =
  | { readonly _tag: "Run"; readonly input: Agent.Input; readonly journal: Journal["Service"] }
  | { readonly _tag: "Settled"; readonly outcome: Outcome<O> }

const stopReasons: ReadonlySet<string> = new Set(StopReason.literals)

const isStopReason = (outcome: string): outcome is StopReason => stopReasons.has(outcome)

/** The name of the entry at which a person stopped a thread: a runner that stops leaves none, since another goes on. */
const stoppedAt = "interrupted"

/** Writes down that a person stopped the thread where it is. */
export const markStopped = (store: Service, threadId: string): Effect.Effect<void, SessionError> =>
  Effect.flatMap(store.leaf(threadId), ({ id }) => store.label(threadId, stoppedAt, id))

/**
 * How the last run of a thread ended, if it is over: the last thing but one that it wrote down. One that failed, or was
 * interrupted by what is not a person, is gone on with.
 */
const ending = Effect.fnUntraced(function* (
  store: Service,
  threadId: string
): Effect.fn.Return<Ended | undefined, SessionError> {
  const { entries } = yield* store.load(threadId, { limit: 2 })
  const end = entries.find(({ entry }) => entry._tag === "RunSettled")?.entry
  if (end?._tag !== "RunSettled") return undefined
  if (isStopReason(end.outcome)) return end.outcome
  if (end.outcome !== "interrupted") return undefined
  const labels = yield* store.labels(threadId)
  return labels.get(stoppedAt) === entries.at(-1)?.id ? "interrupted" : undefined
})

/** Whether a request with this id was ever made in a thread: then a decision on it is late, not wrong. */
const wasAsked = Effect.fnUntraced(function* (store: Service, threadId: string, ids: ReadonlySet<string>) {
  const missing = new Set(ids)
  let from: string | undefined
  for (;;) {
    const { entries, next } = yield* store.load(threadId, from === undefined ? {} : { from })
    for (const { entry } of entries) if (entry._tag === "Request") missing.delete(entry.request.id)
    if (missing.size === 0 || next === null) return missing
    from = next
  }
})

/** What a thread waits for. A suspension that something else was said after is over. */
const pendingIn = (
  checkpoint: Checkpoint.Checkpoint | undefined,
  stopReason: Ended | undefined
): Effect.Effect<ReadonlyArray<Request>, InvalidEncoding> =>
  checkpoint === undefined || stopReason !== "suspended" ? Effect.succeed([]) : Checkpoint.pending(checkpoint)

const lastTurn = (messages: ReadonlyArray<Message>): AiMessage | undefined =>
  messages.findLast((message) => message.role === "ai")

/**
 * Works out what a push means for a thread as it stands, so that it counts once however often it comes: an input that is
 * not there is run; one that is there and not settled is gone on with; of one that is settled, the outcome is read.
 */
export const plan = Effect.fnUntraced(function* <O, E, R>(
  store: Service,
  agent: Agent.Agent<O, E, R>,
  codecs: Codecs<O, E>,
  threadId: string,
  push: Push,
  unknownOutcome?: (turn: AiMessage | undefined) => Checkpoint.UnknownOutcome
): Effect.fn.Return<Plan<O>, AgentError> {
  const invalid = (problem: string) => new AgentError({ agent: agent.name, reason: { _tag: "InvalidInput", problem } })
  const inThread = <A>(effect: Effect.Effect<A, SessionError>) =>
    Effect.mapError(effect, (error) => new AgentError({ agent: agent.name, reason: { _tag: "Thread", error } }))

  const thread: Thread = yield* inThread(makeJournal(store).open(threadId))
  // What was read is not read again by the run.
  const journal: Journal["Service"] = { open: () => Effect.succeed(thread) }
  const { checkpoint } = thread
  const messages = checkpoint?.messages ?? []
  const run = (input: Agent.Input): Plan<O> => ({ _tag: "Run", input, journal })
  const resume = (decisions: ReadonlyArray<Decision>) =>
    run(
      Checkpoint.resume(undefined, {
        decisions,
        ...(unknownOutcome === undefined ? {} : { unknownOutcome: unknownOutcome(lastTurn(messages)) })
      })
    )
  const stopReason = yield* inThread(ending(store, threadId))
  const pending = yield* Effect.mapError(pendingIn(checkpoint, stopReason), (error) => invalid(error.message))
  const done = (first: number, end: number, reason: Ended) => {
    const spent = checkpoint ?? { usage: zero, rounds: 0 }
    const outcome =
      reason === "suspended" || reason === "interrupted"
        ? Effect.succeed(unanswered<O>(messages.slice(first), reason, pending, spent))
        : settled(agent.name, codecs, messages.slice(first, end), reason, spent)
    return Effect.map(outcome, (known): Plan<O> => ({ _tag: "Settled", outcome: known }))
  }

  const { message } = push
  const index = message === undefined ? -1 : messages.findIndex(({ id }) => id === message.id)
  const behind = index === -1 ? -1 : messages.findIndex((one, at) => at > index && isInput(one))
  if (behind !== -1) return yield* done(index, behind, "completed")

  if (push._tag === "Input") {
    if (index === -1) return run(push.message)
    return stopReason === undefined ? resume([]) : yield* done(index, messages.length, stopReason)
  }

  const first = Math.max(0, messages.findLastIndex(isInput))
  const waiting = new Set(pending.map(({ id }) => id))
  const given = push.decisions.filter(({ id }) => waiting.has(id))
  const late = new Set(push.decisions.flatMap(({ id }) => (waiting.has(id) ? [] : [id])))
  if (late.size > 0) {
    const [unknown] = yield* inThread(wasAsked(store, threadId, late))
    if (unknown !== undefined) return yield* invalid(`nothing waits for a decision with the id "${unknown}"`)
  }
  if (checkpoint === undefined) return yield* invalid("there is nothing to go on with in this thread")
  const isAskedAgain = push.decisions.length === 0 && stopReason === "suspended"
  if (stopReason === undefined || given.length > 0 || isAskedAgain) return resume(given)
  return yield* done(first, messages.length, stopReason)
})

/** What a thread waits for, as it is stored. */
export const pendingOf = Effect.fnUntraced(function* (
  store: Service,
  threadId: string
): Effect.fn.Return<ReadonlyArray<Request>, SessionError | InvalidEncoding> {
  const stopReason = yield* Effect.catchIf(
    ending(store, threadId),
    (error) => error.reason._tag === "NotFound",
    () => Effect.undefined
  )
  if (stopReason !== "suspended") return []
  const { checkpoint } = yield* load(store, threadId)
  return yield* pendingIn(checkpoint, stopReason)
})
