/** The two halves of a run, and the ways to report, append, note and count in it. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import type { Holder } from "../../support/effect/attached.ts"
import { AgentError } from "../AgentError.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Approvals, Decision, Request } from "../Approval.ts"
import type { ModelSession, ToolDefinition } from "../ChatModel.ts"
import type { UnknownOutcome } from "../Checkpoint.ts"
import type { Entry, Thread } from "../Journal.ts"
import { fromUnknown, type Json, type JsonObject } from "../Json.ts"
import { type AiMessage, encode as encodeMessage, type HumanMessage, type Message } from "../Message.ts"
import type { LogContext, MessageLog } from "../MessageLog.ts"
import type { Question } from "../Question.ts"
import type { Run } from "../Run.ts"
import type { Cited } from "../Sources.ts"
import type { Suspension } from "../thread/suspension.ts"
import type { Tool } from "../Tool.ts"
import type { ToolError } from "../ToolError.ts"
import type { ToolOutput } from "../ToolOutput.ts"
import { add, type Spent, type Usage, zero } from "../Usage.ts"
import type { Compiled } from "./definition.ts"
import * as Hub from "./hub.ts"
import type { Done } from "./records.ts"
import type { StateStore } from "./store.ts"
import type { Toolset } from "./toolset.ts"

/** The messages that a handle sends into a run. */
export interface Control {
  open: boolean
  readonly steering: Array<HumanMessage>
  readonly followUps: Array<HumanMessage>
}

/** One call of the round that is being worked on; `outcome` is there when it has one. */
export interface OpenCall {
  readonly id: string
  readonly name: string
  /**
   * The trace that an earlier run left of it: it waits inside (a sub-agent of its own does), or nobody knows whether it
   * took effect.
   */
  left: "waiting" | "unknown" | undefined
  started: boolean
  /** Set for a call that is run again, and resumes where it was, when a run is cut off in it. */
  readonly resumes?: boolean | undefined
  /** Set when its answer is in the history: the end of a run answers those that are left. */
  answered: boolean
  outcome: { readonly output: ToolOutput } | { readonly error: ToolError } | undefined
  /** The requests that wait inside of it: those of its sub-agents, of the calls it made, and its questions. */
  suspended: ReadonlyArray<Request> | undefined
  /** The call that made this one, for one that the model did not make. */
  readonly outer?: OpenCall | undefined
  /** The requests about it that were decided on before an earlier run began it. */
  readonly settled?: ReadonlySet<string> | undefined
  /** The sources of the calls that it made: listed behind its output, after its own. */
  found?: ReadonlyArray<Cited> | undefined
  /** Attempts at it that were begun in this run, and the last number that was given to something inside of it. */
  attempts: number
  ordinal: number | undefined
}

/** The entries of a run that are still to be stored in its thread. */
export interface Recorder {
  readonly thread: Thread
  readonly threadId: string
  entries: Array<Entry>
  /** The work of the whole tree, as the thread has it. */
  spent: Spent | undefined
  /** True from the entry that settles the run: nothing may come behind it. */
  isSettled: boolean
  /** One append at a time: what waits for it is stored in one go. */
  readonly lock: Semaphore.Semaphore
}

/**
 * The journal of one run. While the calls of a turn pass their gates, the turn and all entries behind it are held back:
 * a sibling that stores its own step must not store this turn as begun.
 */
export interface Writer {
  readonly recorder: Recorder
  held: Array<Entry> | undefined
}

/** A record as it is kept: as it was stored until it is asked for, and a sub-agent by the run that it is. */
export interface Kept {
  done: Done | undefined
  readonly json: Json | undefined
  readonly below: Map<string, Json>
  live: Live | undefined
}

/** The records of a run, by call and place. */
export type Inside = Map<string, Map<string, Kept>>

/** One attempt at a call: what was begun in it so far, and who waits. */
export interface Attempt {
  readonly live: Live
  readonly call: OpenCall
  /** The number of times that each thing was begun. */
  seen: Map<string, number> | undefined
  /** The names of the steps that are at work. */
  steps: Set<string> | undefined
  /** The locks of conversations that go on from input to input. */
  sessions: Map<string, Semaphore.Semaphore> | undefined
  active: number
  waiting: Array<Request> | undefined
  /** Wakes whoever waits, to look whether all do. */
  wake: Set<() => void> | undefined
  /** Is told that nothing is at work in the attempt, and something waits. */
  onStill: ((requests: ReadonlyArray<Request>) => void) | undefined
  /** Set when the attempt has ended: nothing may begin in it any more. */
  over: boolean
}

/** A turn whose calls are at the gates, with the requests made about them and the decisions made so far. */
export interface Gating {
  readonly message: AiMessage
  readonly calls: ReadonlyArray<OpenCall>
  readonly requests: Array<Request>
  readonly decisions: Array<Decision>
}

/** The time that something spent waiting for people: how many it waits for, since when, and before that (milliseconds). */
export interface Waiting {
  active: number
  since: number
  total: number
}

/** The ways of a tool to act by the run that it is called in: other tools, and people. */
export interface Doors {
  readonly call: (
    attempt: Attempt | undefined,
    target: string | Tool<unknown>,
    args: JsonObject
  ) => Effect.Effect<ToolOutput, ToolError>
  readonly ask: <A>(attempt: Attempt | undefined, question: Question<A>) => Effect.Effect<A, ToolError>
  readonly step: <A, I, E, R>(
    attempt: Attempt | undefined,
    name: string,
    work: Effect.Effect<A, E, R>,
    schema: Schema.Codec<A, I>
  ) => Effect.Effect<A, E, R>
}

/** The origin of events. */
export interface Origin {
  readonly runId: string
  readonly path: ReadonlyArray<string>
  readonly hub: Hub.Hub
  readonly clock: Clock.Clock
  /** Set while the run is wound up: nothing waits for slow readers any more. */
  ending: boolean
}

/** Anything that reports events of a run, also before there is one. */
export interface From {
  readonly origin: Origin
}

/** The key of the half that the loop keeps: sub-agents are begun with the other half alone. */
export const half = Symbol("effect-deepagents/live")

/** The half of a run that middleware and tools see, as the loop writes it. */
export interface OwnRun extends Omit<Run, "round" | "offered" | "usage" | "spent" | "messages" | "state">, Holder {
  [half]: Live | undefined
  round: number
  offered: ReadonlyArray<ToolDefinition>
  usage: Usage
  spent: Spent
  readonly messages: Array<Message>
  readonly state: StateStore
}

/** A run as the loop keeps it. Middleware and tools are given its `run` alone. */
export interface Live extends From {
  readonly run: OwnRun
  readonly compiled: Compiled
  readonly parent: Live | undefined
  readonly control: Control | undefined
  readonly makeId: () => string
  readonly approvals: Approvals["Service"] | undefined
  readonly nextTurn: ModelSession["nextTurn"]
  systemPrompt: string
  /** The tools that the model is offered, with the one that takes its answer. */
  tools: ReadonlyArray<ToolDefinition>
  toolset: Toolset
  /** The arrays that middleware gave last of tools that come and go. */
  given: ReadonlyArray<ReadonlyArray<Tool<unknown>>> | undefined

  /** The time at which this run began, in milliseconds since the epoch. */
  readonly beganAt: number
  /** The index of the first message that this run adds. */
  readonly firstNew: number
  /** The ids of all calls of this conversation. */
  readonly callIds: Set<string>
  /** The text that was streamed of a turn that is not done. */
  partial: { text: string; reasoning: string } | undefined
  /** The calls of a round that are not all in the history yet. */
  batch: ReadonlyArray<OpenCall>
  usageSinceRound: Usage

  /** Writes to the journal of the whole tree. */
  readonly journal: Writer | undefined
  readonly log: MessageLog | undefined
  /** The number of messages that the log has. */
  logged: number

  /** The turn of a checkpoint that this run resumes, and what is left of its calls, by their ids. */
  resumed: { readonly turn: AiMessage; readonly left: ReadonlyMap<string, OpenCall["left"]> } | undefined
  /** The reason that the run was suspended for when it began. */
  suspension: Suspension | null
  /** The slot that keeps this run in the journal of the tree, for one inside of a call. */
  readonly place: string | undefined
  /** The call of the parent that this run is inside of. */
  readonly under: OpenCall | undefined
  /** Everything done inside of its open calls. */
  inside: Inside | undefined
  /** The turn whose calls are at the gates: none of them has begun. */
  gating: Gating | undefined
  /** True when this run wrote facts about the calls of its turn into the state: they are cleared with the turn. */
  isMarked: boolean
  /** True when a gate counted a call of that turn: the turn is stored before its calls begin. */
  isCounted: boolean
  /** The time that calls, and the run as a whole (under ""), spent waiting for people. */
  waits: Map<string, Waiting> | undefined
  /** Everything that a tool may do by the run in the middle of its work. */
  readonly doors: Doors
  /** The decisions for the whole tree. */
  readonly decisions: ReadonlyArray<Decision>
  readonly unknownOutcome: UnknownOutcome
}

/** Finds the half that the loop keeps of a run. */
export const liveOf = (run: Run & Partial<Pick<OwnRun, typeof half>>): Effect.Effect<Live> =>
  Effect.suspend(() => {
    const live = run[half]
    // A copy of a run is not one.
    return live?.run !== run
      ? Effect.die(new Error("This run was not begun by Agent: give tools the ToolContext that they are called with."))
      : Effect.succeed(live)
  })

type Fields<E> = E extends AgentEvent ? Omit<E, "seq" | "runId" | "path" | "at"> : never

// The fields come last: an object that begins as a copy is far slower to add to.
const stamp = (origin: Origin, fields: Fields<AgentEvent>): AgentEvent => ({
  seq: origin.hub.seq++,
  runId: origin.runId,
  path: origin.path,
  at: origin.clock.currentTimeMillisUnsafe(),
  ...fields
})

/** Says that something happened, without waiting for readers: for what comes in one go with others. */
export const offer = ({ origin }: From, fields: Fields<AgentEvent>): void => {
  if (origin.hub.watched) Hub.offer(origin.hub, stamp(origin, fields))
}

/** Says a piece of text. It is what is said most often, so it is made in one step. */
export const offerDelta = ({ origin }: From, tag: "TextDelta" | "ReasoningDelta", text: string, at: number): void => {
  const { hub, path, runId } = origin
  if (hub.watched) Hub.offer(hub, { _tag: tag, text, seq: hub.seq++, runId, path, at })
}

/** Reports the end of a run. That of the outermost run is kept for late readers. */
export const offerEnd = (origin: Origin, fields: Fields<AgentEvent>): void => {
  const event = stamp(origin, fields)
  if (origin.path.length === 1) origin.hub.last = event
  if (origin.hub.watched) Hub.offer(origin.hub, event)
}

/** Waits for slow readers, unless the run is being wound up. */
export const settleReaders = ({ origin }: From): Effect.Effect<void> =>
  origin.hub.watched && !origin.ending ? Hub.wait(origin.hub) : Effect.void

/**
 * Says that something happened. The event is out when this returns; the effect only waits for slow readers. So call it
 * where it happens, and run the effect at once.
 */
export const emit = (from: From, fields: Fields<AgentEvent>): Effect.Effect<void> => {
  const { origin } = from
  if (!origin.hub.watched) return Effect.void
  Hub.offer(origin.hub, stamp(origin, fields))
  return settleReaders(from)
}

const logContext = ({ run }: Live): LogContext => ({
  agent: run.agent,
  path: run.path,
  runId: run.runId,
  threadId: run.threadId,
  round: run.round
})

/** Gives the log what it does not have. */
export const flushLog = (live: Live): Effect.Effect<void> => {
  const { log } = live
  if (log === undefined || live.logged >= live.run.messages.length) return Effect.void
  const messages = live.run.messages.slice(live.logged)
  live.logged = live.run.messages.length
  const context = logContext(live)
  return Effect.uninterruptible(Effect.forEach(messages, (message) => log.append(message, context), { discard: true }))
}

/** Adds an entry to the journal. The next step stores it. */
export const note = ({ journal }: Pick<Live, "journal">, entry: Entry): void => {
  if (journal !== undefined) (journal.held ?? journal.recorder.entries).push(entry)
}

/** Adds an entry about what the whole tree shares: it is never held back. */
export const noteShared = ({ journal }: Pick<Live, "journal">, entry: Entry): void => {
  journal?.recorder.entries.push(entry)
}

/** Holds back the entries of a run until the calls of its turn have passed their gates. */
export const hold = ({ journal }: Live): void => {
  if (journal !== undefined) journal.held ??= []
}

/** Ends {@link hold}: the entries are stored with the next step of any run of the tree. */
export const release = ({ journal }: Live): void => {
  if (journal?.held === undefined) return
  journal.recorder.entries.push(...journal.held)
  journal.held = undefined
}

/** True for a run whose messages and state a journal keeps: that of a thread, and those inside of its calls. */
export const isJournaled = ({ journal, parent, place }: Live): boolean =>
  journal !== undefined && (parent === undefined || place !== undefined)

/** The beginning of the names by which the journal has the slots of a run. */
export const prefixOf = ({ place }: Pick<Live, "place">): string => (place === undefined ? "" : `${place}/s/`)

const rootOf = (live: Live): Live => {
  let one = live
  while (one.parent !== undefined) one = one.parent
  return one
}

/** Stores what was written down, by the whole tree. A step begins when the one before it is stored. */
export const save = (live: Live): Effect.Effect<void, AgentError> => {
  const { journal } = live
  if (journal === undefined || !isJournaled(live)) return Effect.void
  release(live)
  const { recorder } = journal
  if (recorder.entries.length === 0 && rootOf(live).run.spent === recorder.spent) return Effect.void
  if (live.place !== undefined) note(live, { _tag: "State", slot: `${live.place}/u`, value: progressOf(live) })
  return recorder.lock.withPermits(1)(Effect.suspend(() => store(rootOf(live), recorder)))
}

/** Notes the end of the outermost run. */
export const noteSettled = (live: Live, outcome: string): void => {
  if (live.journal !== undefined) live.journal.recorder.isSettled = true
  note(live, { _tag: "RunSettled", runId: live.run.runId, outcome })
}

/** The usage, the rounds and the work of a run, as the record of a sub-agent keeps them. */
export const progressOf = (live: Live): Json =>
  fromUnknown({ usage: live.run.usage, rounds: live.run.round, spent: spentBy(live) })

/** The work of a run and everything below it so far. */
export const spentBy = (live: Live): Spent => {
  const now = live.origin.clock.currentTimeMillisUnsafe()
  return { ...live.run.spent, time: live.run.spent.time + Math.max(0, now - live.beganAt - waited(live, "")) }
}

const store = (live: Live, recorder: Recorder): Effect.Effect<void, AgentError> => {
  const { thread, threadId } = recorder
  const due = recorder.entries
  const { round: rounds, spent, usage } = live.run
  // An earlier append may have stored them.
  if (due.length === 0 && spent === recorder.spent) return Effect.void
  const entries: ReadonlyArray<Entry> = [...due, { _tag: "Step", usage, rounds, spent: spentBy(live) }]
  recorder.entries = []
  const stored = Effect.onError(thread.append(entries), () =>
    Effect.sync(() => {
      // They are still due: what comes after them must not be stored without them.
      recorder.entries = [...due, ...recorder.entries]
    })
  )
  return Effect.flatMap(
    Effect.mapError(
      Effect.uninterruptible(stored),
      (error) => new AgentError({ agent: live.run.agent, reason: { _tag: "Thread", error } })
    ),
    (step) => {
      recorder.spent = spent
      return emit(live, { _tag: "CheckpointSaved", threadId, step })
    }
  )
}

/** Notes a message: of a thread by itself, of a run inside of a call by its place in the conversation. */
const noteMessage = (live: Live, message: Message, index: number): void => {
  if (live.parent === undefined) note(live, { _tag: "Message", message })
  else if (live.place !== undefined) {
    note(live, { _tag: "State", slot: `${live.place}/m/${index}`, value: encodeMessage(message) })
  }
}

const tell = (live: Live, message: Message, index: number): Effect.Effect<void> => {
  noteMessage(live, message, index)
  return emit(live, { _tag: "MessageAppended", message })
}

/** Journal, event and log of a message that is in the history already, in the place of what stood in for it. */
export const appendLate = (live: Live, message: Message): Effect.Effect<void> => {
  const told = tell(live, message, live.run.messages.indexOf(message))
  return live.log === undefined ? told : Effect.andThen(live.log.append(message, logContext(live)), told)
}

/**
 * Adds a message to the conversation: history, journal, event and log. Like `emit`, it has happened when this returns.
 */
export const append = (live: Live, message: Message): Effect.Effect<void> => {
  const told = tell(live, message, live.run.messages.push(message) - 1)
  return live.log === undefined ? told : Effect.andThen(flushLog(live), told)
}

/** Counts what a model call used, here and in everything above. */
export const count = (live: Live, usage: Usage | undefined): void => {
  if (usage === undefined) return
  live.usageSinceRound = add(live.usageSinceRound, usage)
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) one.run.usage = add(one.run.usage, usage)
}

/** Counts a turn of the model, or calls of tools, here and in everything above. */
export const countWork = (live: Live, kind: "rounds" | "toolCalls", amount: number): void => {
  if (amount === 0) return
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) {
    one.run.spent = { ...one.run.spent, [kind]: one.run.spent[kind] + amount }
  }
}

/**
 * Counts work that was done beside a run and for it, here and in everything above, and stores it: nothing else of the run
 * may come soon. After the end of the run it is not stored any more.
 */
export const charge = (live: Live, { beside, rounds = 0, toolCalls = 0 }: Partial<Spent>): Effect.Effect<void> => {
  countWork(live, "rounds", rounds)
  countWork(live, "toolCalls", toolCalls)
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) {
    if (beside !== undefined) one.run.spent = { ...one.run.spent, beside: add(one.run.spent.beside ?? zero, beside) }
    if (one.place !== undefined) noteShared(one, { _tag: "State", slot: `${one.place}/u`, value: progressOf(one) })
  }
  const recorder = live.journal?.recorder
  if (recorder === undefined) return Effect.void
  const stored = recorder.lock.withPermits(1)(
    Effect.suspend(() => (recorder.isSettled ? Effect.void : store(rootOf(live), recorder)))
  )
  return Effect.catch(stored, (error) =>
    Effect.logError(`Work in the background could not be counted in its thread: ${error.message}`)
  )
}

/** Does something during which nothing of a call, and of whatever it is inside of, counts as work. */
export const waitingIn = <A, E, R>(
  live: Live,
  call: OpenCall | undefined,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const all = waitsOf(live, call)
    const now = live.origin.clock.currentTimeMillisUnsafe()
    for (const one of all) if (one.active++ === 0) one.since = now
    return Effect.onExitPrimitive(work, () => {
      const then = live.origin.clock.currentTimeMillisUnsafe()
      for (const one of all) if (--one.active === 0) one.total += then - one.since
      return undefined
    })
  })

/** The clocks of a call, those around it, its run, and so on up to the outermost run. */
const waitsOf = (live: Live, call: OpenCall | undefined): ReadonlyArray<Waiting> => {
  const all: Array<Waiting> = []
  let under = call
  for (let one: Live | undefined = live; one !== undefined; one = one.parent) {
    const waits = (one.waits ??= new Map<string, Waiting>())
    const clock = (id: string): void => {
      const found = waits.get(id) ?? { active: 0, since: 0, total: 0 }
      waits.set(id, found)
      all.push(found)
    }
    clock("")
    for (let outer = under; outer !== undefined; outer = outer.outer) clock(outer.id)
    under = one.under
  }
  return all
}

/** The milliseconds that a call (or the run, under "") has spent waiting for people so far. */
export const waited = (live: Live, id: string): number => {
  const clock = live.waits?.get(id)
  if (clock === undefined) return 0
  return clock.total + (clock.active === 0 ? 0 : live.origin.clock.currentTimeMillisUnsafe() - clock.since)
}
