/**
 * Reruns a stored thread with another agent, and compares the branches.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { type Agent } from "effect-deepagents"
 * import { Replay } from "effect-deepagents/evals"
 *
 * declare const shorter: Agent.Agent
 *
 * const program = Effect.gen(function* () {
 *   const { threadId } = yield* Replay.rerun("report-7", { agent: shorter })
 *   const { left, right } = yield* Replay.compare("report-7", threadId)
 *   return [left.usage.cost, right.usage.cost]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { AgentResult } from "../core/AgentResult.ts"
import { Journal } from "../core/Journal.ts"
import type { HumanMessage, Message } from "../core/Message.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import { SessionStore, type StoredEntry } from "../core/SessionStore.ts"
import { add, subtract, type Usage, zero } from "../core/Usage.ts"
import { makeJournal } from "../sessions/journal.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { makeRecording } from "./internal/recording.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of {@link rerun}. */
export interface Options<O, E, R> {
  /** The agent that runs: with another prompt, model or tool. */
  readonly agent: Agent.Agent<O, E, R>
  /** The id of the entry to begin from. The turn around it runs again, with all later ones. Default: the beginning. */
  readonly from?: string | undefined
  /** The id of the new thread. Default: a random one. */
  readonly threadId?: string | undefined
  /**
   * `recorded` gives calls that the thread made, too, the result that they had there: their tools do not run. `fresh`
   * runs the tools. Default: `recorded`.
   */
  readonly results?: "recorded" | "fresh" | undefined
}

/**
 * The new thread. `asked` of the `questions` have run. `result` is that of the last one: a run that waits for decisions
 * ends the rerun.
 */
export interface Rerun<out O> {
  readonly threadId: string
  readonly result: AgentResult<O | undefined>
  readonly asked: number
  readonly questions: number
}

/** The path to the leaf of a thread, oldest entry first. */
const readPath = Effect.fnUntraced(function* (threadId: string) {
  const store = yield* SessionStore
  const pages: Array<ReadonlyArray<StoredEntry>> = []
  let from = (yield* store.leaf(threadId)).id
  while (from !== null) {
    const page: { readonly entries: ReadonlyArray<StoredEntry>; readonly next: string | null } = yield* store.load(
      threadId,
      { from, limit: 10_000 }
    )
    pages.push(page.entries)
    from = page.next
  }
  return pages.toReversed().flat()
})

const questionOf = ({ entry }: StoredEntry): HumanMessage | undefined =>
  entry._tag === "Message" && entry.message.role === "human" && entry.message.source === undefined
    ? entry.message
    : undefined

const messagesOf = (entries: ReadonlyArray<StoredEntry>): ReadonlyArray<Message> =>
  entries.flatMap(({ entry }) => (entry._tag === "Message" ? [entry.message] : []))

/** The place of the first entry of the turn that an entry belongs to. */
const findTurn = (path: ReadonlyArray<StoredEntry>, from: string | undefined): number | undefined => {
  const place = from === undefined ? 0 : path.findIndex(({ id }) => id === from)
  if (place === -1) return undefined
  const before = path.slice(0, place + 1).findLastIndex((one) => questionOf(one) !== undefined)
  const question = before === -1 ? path.findIndex((one) => questionOf(one) !== undefined) : before
  if (question === -1) return undefined
  return path[question - 1]?.entry._tag === "RunStarted" ? question - 1 : question
}

const refuseRerun = makeEffectCheck("Replay.rerun", shapes.replayRerun)

/**
 * Forks a thread before the turn of an entry, and asks another agent the same questions from there. The thread itself
 * does not change.
 *
 * Nothing is done twice unasked. A call that the thread made, too, gets its recorded result. Any other call that is not
 * `readOnly` asks a person, beside the agent's own gates: the rerun then ends suspended, and `Agent.resume` of the
 * new thread goes on. Files are as they are now, not as they were. Fails with `InvalidPoint` for an unknown entry, and
 * for a thread without questions.
 */
export const rerun = Effect.fnUntraced(function* <O, E, R>(
  threadId: string,
  options: Options<O, E, R>
): Effect.fn.Return<Rerun<O>, SessionError | AgentError | E, SessionStore | Exclude<R, Journal>> {
  yield* refuseRerun(options) ?? Effect.void
  const { agent, from, results = "recorded" } = options
  const store = yield* SessionStore
  const path = yield* readPath(threadId)
  const place = findTurn(path, from)
  if (place === undefined) {
    const problem = "there is no such entry on the branch of the leaf, or no question of a person; choose another one"
    return yield* failure("rerun", threadId, { _tag: "InvalidPoint", entry: from ?? "the first", problem })
  }
  const rest = path.slice(place)
  const questions = rest.flatMap((one) => questionOf(one) ?? [])
  const recording = makeRecording(results === "recorded" ? messagesOf(rest) : [])
  const fork = yield* store.fork(threadId, {
    at: path[place - 1]?.id ?? null,
    ...defined({ threadId: options.threadId })
  })
  const guarded = Agent.around(agent, recording.middleware)
  const ask = Effect.fnUntraced(function* (question: HumanMessage) {
    let result: AgentResult<O | undefined> = yield* Agent.run(guarded, question, { threadId: fork.threadId })
    // A gate asked about a call whose result is known: the result is the answer, and the call never runs.
    for (;;) {
      const decisions = recording.answer(result.pending)
      if (decisions.length === 0) return result
      result = yield* Agent.resume(guarded, { threadId: fork.threadId, decisions })
    }
  })
  return yield* Effect.gen(function* () {
    const [first, ...others] = questions
    if (first === undefined) return yield* Effect.die("a turn begins with a question")
    let result = yield* ask(first)
    let askedCount = 1
    for (const question of others) {
      if (result.stopReason === "suspended") break
      result = yield* ask(question)
      askedCount++
    }
    return { threadId: fork.threadId, result, asked: askedCount, questions: questions.length }
  }).pipe(Effect.provideService(Journal, makeJournal(store)))
})

/** A branch behind the entries that it shares with the other one: its messages, and their usage, rounds and calls. */
export interface Side {
  readonly threadId: string
  readonly messages: ReadonlyArray<Message>
  readonly usage: Usage
  readonly rounds: number
  readonly calls: number
}

/** Two threads: the messages that both have, then each on its own. */
export interface Comparison {
  readonly shared: ReadonlyArray<Message>
  readonly left: Side
  readonly right: Side
}

/** True for the start of a run with a new input. A resumed run goes on with the usage of the run before it. */
const isNewRun = (path: ReadonlyArray<StoredEntry>, place: number): boolean => {
  if (path[place]?.entry._tag !== "RunStarted") return false
  const next = path.slice(place).find(({ entry }) => entry._tag === "Message")?.entry
  return next?._tag === "Message" && next.message.role === "human"
}

/** The usage of the runs behind an entry. Each step has the usage of its run so far. */
const usageBehind = (path: ReadonlyArray<StoredEntry>, parting: number): Usage => {
  const before = path.slice(0, parting).findLast(({ entry }) => entry._tag === "Step")?.entry
  let total = zero
  let base = before?._tag === "Step" ? before.usage : zero
  let used = base
  for (const [index, { entry }] of path.entries()) {
    if (index < parting) continue
    if (isNewRun(path, index)) {
      total = add(total, subtract(used, base))
      base = zero
      used = zero
    } else if (entry._tag === "Step") used = entry.usage
  }
  return add(total, subtract(used, base))
}

const sideOf = (threadId: string, path: ReadonlyArray<StoredEntry>, parting: number): Side => {
  const messages = messagesOf(path.slice(parting))
  const turns = messages.filter((message) => message.role === "ai")
  return {
    threadId,
    messages,
    usage: usageBehind(path, parting),
    rounds: turns.length,
    calls: turns.reduce((sum, { toolCalls }) => sum + toolCalls.length, 0)
  }
}

/** Compares two threads, such as a thread and its fork, behind the entries that they share. */
export const compare = Effect.fnUntraced(function* (
  left: string,
  right: string
): Effect.fn.Return<Comparison, SessionError, SessionStore> {
  const [one, other] = [yield* readPath(left), yield* readPath(right)]
  const differing = one.findIndex(({ id }, place) => other[place]?.id !== id)
  const parting = differing === -1 ? one.length : differing
  return {
    shared: messagesOf(one.slice(0, parting)),
    left: sideOf(left, one, parting),
    right: sideOf(right, other, parting)
  }
})
