/**
 * A run inside the loop: the half that middleware and tools see (`OwnRun`), and four records with an owner each. `turn`
 * belongs to the door to the model, `round` to the calls of a round, `records` to the journal, `clock` to working time.
 */
import type * as Clock from "effect/Clock"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Holder } from "../../support/effect/attached.ts"
import type { Approvals, Decision, Request } from "../Approval.ts"
import type { ModelRequest, ModelSession, ToolDefinition } from "../ChatModel.ts"
import type { UnknownOutcome } from "../Checkpoint.ts"
import type { Entry, Thread } from "../Journal.ts"
import type { Json } from "../Json.ts"
import type { AiMessage, HumanMessage, Message } from "../Message.ts"
import type { MessageLog } from "../MessageLog.ts"
import type { PreparedCall } from "../Middleware.ts"
import type { RehearsedCall } from "../Question.ts"
import type { Ruling } from "../Ruling.ts"
import type { Run } from "../Run.ts"
import type { CitedSource } from "../Sources.ts"
import type { Suspension } from "../thread/suspension.ts"
import type { Tool } from "../Tool.ts"
import type { ToolError } from "../ToolError.ts"
import type { ToolOutput } from "../ToolOutput.ts"
import type { Spent, Usage } from "../Usage.ts"
import type { CompiledAgent } from "./definition.ts"
import type { Hub } from "./hub.ts"
import type { DoneRecord } from "./records/records.ts"
import type { StateStore } from "./records/store.ts"
import type { Toolset } from "./toolset.ts"

export interface Control {
  open: boolean
  readonly steering: Array<HumanMessage>
  readonly followUps: Array<HumanMessage>
}

/** A call of the current round. A call with an `outcome` is done. */
export interface OpenCall {
  readonly id: string
  readonly name: string
  /** The trace of an earlier run: something inside the call waits, or the call may have taken effect. */
  trace: "waiting" | "unknown" | undefined
  started: boolean
  /** True for calls that are safe to re-run after a crash. */
  readonly resumes?: boolean | undefined
  /** True when the history has its answer. The end of a run answers all other calls. */
  answered: boolean
  outcome: { readonly output: ToolOutput } | { readonly error: ToolError } | undefined
  /** Pending requests inside the call: of its sub-agents, its inner calls and its questions. */
  suspended: ReadonlyArray<Request> | undefined
  /** The call that made this one; `undefined` for calls of the model. */
  readonly outer?: OpenCall | undefined
  /** Requests about the call that were decided before an earlier run began it. */
  readonly settled?: ReadonlySet<string> | undefined
  /** Sources of its inner calls, listed after its own. */
  innerSources?: ReadonlyArray<CitedSource> | undefined
  /** The rehearsal by which a person allowed this call. */
  granted?: RehearsedCall | undefined
  /** The number of attempts in this run. */
  attempts: number
  /** The last number given to an inner call or a question. */
  ordinal: number | undefined
}

/** The entries that a tree of runs has not stored yet. */
export interface Recorder {
  readonly thread: Thread
  readonly threadId: string
  entries: Array<Entry>
  /** The work of the whole tree, as the thread has it. */
  spent: Spent | undefined
  /** True after the entry that settles the run: no entry may follow. */
  isSettled: boolean
  /** Allows one append at a time. Entries that wait for it are stored together. */
  readonly lock: Semaphore.Semaphore
}

/**
 * The journal of one run. While the calls of a turn pass their gates, the turn and later entries are held back: a sibling
 * that stores its own step must not store this turn as begun.
 */
export interface Writer {
  readonly recorder: Recorder
  heldEntries: Array<Entry> | undefined
}

/** A stored record: as JSON until it is read, a sub-agent's as its run. */
export interface KeptRecord {
  done: DoneRecord | undefined
  readonly json: Json | undefined
  readonly below: Map<string, Json>
  live: Live | undefined
}

export type Inside = Map<string, Map<string, KeptRecord>>

/** One attempt at a call: its work so far, and its waiting requests. */
export interface Attempt {
  readonly live: Live
  readonly call: OpenCall
  /** How often the attempt began each thing. */
  counts: Map<string, number> | undefined
  /** The names of running steps. */
  steps: Set<string> | undefined
  /** One lock per conversation with a sub-agent. */
  sessions: Map<string, Semaphore.Semaphore> | undefined
  /** The number of tasks at work. */
  active: number
  waiting: Array<Request> | undefined
  /** Wakes the waiting tasks, to check whether all tasks wait. */
  wake: Set<() => void> | undefined
  /** The rehearsed calls that a person allowed, and that were not made yet. */
  granted: Array<RehearsedCall> | undefined
  /** The number of rehearsed calls. */
  rehearsed: number
  /** Inner calls that began in the current tick, and are not ruled on yet. */
  gathering: InnerCallBatch | undefined
  /** Called when all tasks of the attempt wait for decisions. */
  onStill: ((requests: ReadonlyArray<Request>) => void) | undefined
  /** True when the attempt has ended: nothing may begin in it. */
  isOver: boolean
}

/** Inner calls that the sources rule on together. `undefined` in place of their rulings: nobody asked the sources. */
export interface InnerCallBatch {
  readonly calls: Array<PreparedCall>
  readonly rulings: Deferred.Deferred<ReadonlyMap<string, ReadonlyArray<Ruling>> | undefined, unknown>
}

/** A turn whose calls are at the gates, with its requests and decisions so far. */
export interface GatedTurn {
  readonly message: AiMessage
  readonly calls: ReadonlyArray<OpenCall>
  readonly requests: Array<Request>
  readonly decisions: Array<Decision>
}

/** Time spent waiting for people, in milliseconds: `active` waits are running, since `since`. */
export interface WaitingTime {
  active: number
  since: number
  total: number
}

export interface Origin {
  readonly runId: string
  readonly path: ReadonlyArray<string>
  readonly hub: Hub
  readonly clock: Clock.Clock
  /** True while the run winds up: it no longer waits for slow readers. */
  ending: boolean
}

/** Anything that reports events of a run, even before the run exists. */
export interface From {
  readonly origin: Origin
}

/** The key that leads from a public run to its `Live`: sub-agents begin with the public run alone. */
export const half = Symbol("effect-deepagents/live")

/** The public half of a run, as the loop writes it. */
export interface OwnRun extends Omit<Run, "round" | "offered" | "usage" | "spent" | "messages" | "state">, Holder {
  [half]: Live | undefined
  round: number
  offered: ReadonlyArray<ToolDefinition>
  usage: Usage
  spent: Spent
  readonly messages: Array<Message>
  readonly state: StateStore
}

/** A turn that streams: its request, its text so far, and the arguments of its calls. */
export interface UnfinishedTurn {
  readonly request: ModelRequest
  text: string
  reasoning: string
  calls: string
  /** True once its usage is counted. */
  isCounted: boolean
}

/** The requests to the model, and the streamed text of the current turn. */
export interface Turn {
  /** The door to the model, with all middleware around it. */
  readonly next: ModelSession["nextTurn"]
  systemPrompt: string
  toolset: Toolset
  /** The tools offered to the model, the tool that takes its answer included. */
  tools: ReadonlyArray<ToolDefinition>
  /** The arrays that middleware with dynamic tools returned last. */
  toolLists: ReadonlyArray<ReadonlyArray<Tool<unknown>>> | undefined
  /** The ids of all calls of the conversation. */
  readonly callIds: Set<string>
  /** The id of the turn's message, if readers were told it. */
  messageId: string | undefined
  /** The streamed text of an unfinished turn. */
  partial: UnfinishedTurn | undefined
  usageSinceRound: Usage
}

/** The calls of the current round, and the suspension that it may resume. */
export interface Round {
  /** Calls without an answer in the history. */
  batch: ReadonlyArray<OpenCall>
  /** The turn that this run resumes, and the traces of its calls by id. */
  resumed: { readonly turn: AiMessage; readonly traces: ReadonlyMap<string, OpenCall["trace"]> } | undefined
  /** The suspension that the run began with. */
  suspension: Suspension | null
  /** Set while the calls of a turn are at the gates: none has begun. */
  gating: GatedTurn | undefined
  /** True when the state has facts about the calls of the turn. They are cleared with the turn. */
  isMarked: boolean
}

/** The outputs of a run: the journal of its tree, the message log, the records of its open calls. */
export interface Records {
  readonly journal: Writer | undefined
  /** True when the journal keeps the run's messages and state: for the outermost run, and for runs inside its calls. */
  readonly isJournaled: boolean
  /** The slot that keeps this run in the journal, for a run inside a call. */
  readonly place: string | undefined
  /** The records of what its open calls did. */
  inside: Inside | undefined
  readonly log: MessageLog | undefined
  /** The number of messages that the log has. */
  logged: number
}

/** The working time of a run: its beginning, and how long it waited for people. */
export interface WorkClock {
  /** Milliseconds since the epoch. */
  readonly beganAt: number
  /** Waiting time by call id; `""` is the whole run. */
  waits: Map<string, WaitingTime> | undefined
}

/** A run as the loop keeps it. Middleware and tools get its `run` alone. */
export interface Live extends From {
  readonly run: OwnRun
  readonly compiled: CompiledAgent
  readonly parent: Live | undefined
  /** The call of the parent that this run is inside of. */
  readonly under: OpenCall | undefined
  readonly control: Control | undefined
  readonly makeId: () => string
  readonly approvals: Approvals["Service"] | undefined
  /** The decisions for the whole tree. */
  readonly decisions: ReadonlyArray<Decision>
  readonly unknownOutcome: UnknownOutcome
  /** The index of the first message that this run adds. */
  readonly firstNew: number
  readonly turn: Turn
  readonly round: Round
  readonly records: Records
  readonly clock: WorkClock
}

export const liveOf = (run: Run & Partial<Pick<OwnRun, typeof half>>): Effect.Effect<Live> =>
  Effect.suspend(() => {
    const live = run[half]
    // A copy of a run is no run.
    return live?.run !== run
      ? Effect.die(new Error("This run was not begun by Agent: give tools the ToolContext that they are called with."))
      : Effect.succeed(live)
  })

export const rootOf = (live: Live): Live => {
  let root = live
  while (root.parent !== undefined) root = root.parent
  return root
}
