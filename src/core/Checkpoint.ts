/**
 * Resuming a run that stopped: suspended for a decision, interrupted, or cut off by a crash.
 *
 * A checkpoint holds the messages and the state of a run. An `AgentResult` is a checkpoint; as JSON it can wait
 * anywhere.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Approval, Checkpoint } from "effect-deepagents"
 *
 * declare const agent: Agent.Agent<string | undefined, never, never>
 *
 * const program = Effect.gen(function* () {
 *   const first = yield* Agent.run(agent, "Clean up the old branches")
 *   const json = Checkpoint.encode(first)
 *   // … another process, another day
 *   const checkpoint = yield* Checkpoint.decode(json)
 *   const decisions = first.pending.map((request) => Approval.approve(request))
 *   return yield* Agent.resume(agent, { checkpoint, decisions })
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { defined } from "../support/json/defined.ts"
import { check } from "../support/options/check.ts"
import { version } from "../support/store/version.ts"
import * as AgentState from "./AgentState.ts"
import type { Decision, Request } from "./Approval.ts"
import { Json } from "./Json.ts"
import { Message } from "./Message.ts"
import type { PreparedCall } from "./Middleware.ts"
import { decodeVersioned } from "./schema/encoding.ts"
import type { InvalidEncoding } from "./schema/encoding.ts"
import * as shapes from "./schema/shapes.ts"
import { isOpen } from "./thread/history.ts"
import { openRequests, suspension } from "./thread/suspension.ts"
import type { ToolOutput } from "./ToolOutput.ts"
import { Spent, Usage } from "./Usage.ts"

/** The state of a run at some point. `usage`, `rounds` and `spent` continue from there. */
export interface Checkpoint {
  readonly messages: ReadonlyArray<Message>
  readonly state: AgentState.Snapshot
  readonly usage: Usage
  readonly rounds: number
  /** The work so far, which budgets continue from. Checkpoints of earlier versions do not have it. */
  readonly spent?: Spent | undefined
}

const Stored = Schema.Struct({
  messages: Schema.Array(Message),
  state: Schema.Record(Schema.String, Json),
  usage: Usage,
  rounds: Schema.Finite,
  spent: Schema.optionalKey(Spent)
})
const encodeStored = Schema.encodeSync(Stored)
const decodeStored = decodeVersioned("checkpoint", Stored)

/** Encodes a checkpoint as versioned JSON. */
export const encode = ({ messages, rounds, spent, state, usage }: Checkpoint): Json => ({
  v: version,
  ...encodeStored({ messages, state, usage, rounds, ...defined({ spent }) })
})

/** Decodes a checkpoint that came from outside. */
export const decode = (input: unknown): Effect.Effect<Checkpoint, InvalidEncoding> =>
  Effect.fromResult(decodeStored(input))

/** Gives the requests that a suspended run waits for, sub-agents included: none, once something else was said. */
export const pending = (checkpoint: Checkpoint): Effect.Effect<ReadonlyArray<Request>, InvalidEncoding> =>
  Effect.fromResult(
    Result.map(AgentState.read(checkpoint.state, suspension), (value) =>
      value === null || !isOpen(checkpoint.messages, value) ? [] : openRequests(value)
    )
  )

/**
 * The treatment of a call that an earlier run began and that is not safe to repeat. `tell`: the model reads that its
 * outcome is unknown. `ask`: a person decides, if the agent can be suspended. A function looks the output up; without
 * one, the model is told. It is not asked about calls of sub-agents.
 */
export type UnknownOutcome = "tell" | "ask" | ((call: PreparedCall) => Effect.Effect<ToolOutput | undefined>)

/** The input of a stream, a handle or a chat that resumes. */
export interface Resume {
  readonly _tag: "Resume"
  /** Defaults to the checkpoint of the run's thread. */
  readonly checkpoint: Checkpoint | undefined
  readonly decisions: ReadonlyArray<Decision>
  readonly unknownOutcome: UnknownOutcome
  /** The problem of the options, which fails the run with `InvalidInput`. */
  readonly problem?: string | undefined
}

/** The decisions since a run stopped, and the treatment of calls of which nobody knows whether they took effect. */
export interface DecidedRun {
  /** The decisions on pending requests. Default: none. */
  readonly decisions?: ReadonlyArray<Decision> | undefined
  /** The treatment of calls whose outcome is unknown after a crash. Default: `"tell"`. */
  readonly unknownOutcome?: UnknownOutcome | undefined
}

const checkResume = check(shapes.checkpointResume)

/**
 * Makes an input that resumes a run, for `Agent.stream`, `Agent.start` and chats. `Agent.resume` does the same for
 * awaited runs.
 *
 * An open round resumes with its turn. Calls of a suspended round pass the gates again with these decisions; undecided
 * requests suspend the run again before any call runs. After a crash, calls that only read or are safe to repeat run
 * again; for others see {@link UnknownOutcome}. A partial turn is discarded. Without a checkpoint, the run continues
 * its thread (`threadId`).
 */
export const resume = (checkpoint: Checkpoint | undefined, options?: DecidedRun): Resume => ({
  _tag: "Resume",
  checkpoint,
  decisions: options?.decisions ?? [],
  unknownOutcome: options?.unknownOutcome ?? "tell",
  ...defined({ problem: checkResume(options) })
})
