/**
 * A run from outside: the input and the options that it begins with, and the handle of one in the background. `Agent`
 * exports these types under its own name.
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { RunEnded } from "./AgentError.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import type { AgentResult } from "./AgentResult.ts"
import type { Snapshot } from "./AgentState.ts"
import type { Checkpoint, DecidedRun, Resume } from "./Checkpoint.ts"
import type * as Content from "./Content.ts"
import type { Journal } from "./Journal.ts"
import type { HumanMessage, Message } from "./Message.ts"

/** An input: a text, one message, several, or a resumption (`Checkpoint.resume`). */
export type Input = string | HumanMessage | ReadonlyArray<Message> | Resume

/** Options of a run. */
export interface RunOptions {
  /**
   * The conversation so far, as an earlier result has it. Calls without a result get one, so that every provider
   * accepts the history.
   */
  readonly history?: ReadonlyArray<Message> | undefined
  /** The state of an earlier result. A new input voids its pending requests. */
  readonly state?: Snapshot | undefined
  /** The stored thread to continue: it provides history and state, and stores each step. It needs a `Journal`. */
  readonly threadId?: string | undefined
}

/** The checkpoint or the thread that is resumed, and the decisions since. */
export type ResumeOptions = DecidedRun &
  (
    | {
        /** The checkpoint to resume, such as an earlier result. */
        readonly checkpoint: Checkpoint
      }
    | {
        /** The stored thread to resume. */
        readonly threadId: string
      }
  )

const NoSuchOption = "~effect-deepagents/NoSuchOption"

/** A type without values: the compiler shows its message for an unknown option. */
export interface NoSuchOption<out Message extends string> {
  readonly [NoSuchOption]: Message
}

type KeyOf<T> = T extends object ? keyof T : never

/** Rejects unknown options: a misspelt one would be ignored silently. */
export type Only<Options, Known = RunOptions, Where extends string = ""> = {
  readonly [Key in Exclude<KeyOf<Options>, KeyOf<Known>>]: NoSuchOption<`There is no option "${Where}${Key & string}".`>
}

/** The services that options of a run need. */
export type Needs<Options> = Options extends { readonly threadId: string } ? Journal : never

/**
 * A running agent.
 *
 * - `events`: may be read many times at once. Each reader gets all events since it subscribed (after the end: the
 *   terminal event). The slowest sets the pace
 * - `steer`: adds a message at the next safe place, never between a call and its result
 * - `followUp`: adds a message after the final answer, which then is not the last
 * - `undelivered`: accepted messages that a forced end left over
 * - `messages`: the conversation so far, valid for a next run once this run is over
 *
 * `steer` and `followUp` fail when the run is over.
 */
export interface Handle<out O, out E> {
  readonly runId: string
  readonly events: Stream.Stream<AgentEvent>
  readonly steer: (message: Content.Input | HumanMessage) => Effect.Effect<void, RunEnded>
  readonly followUp: (message: Content.Input | HumanMessage) => Effect.Effect<void, RunEnded>
  readonly interrupt: Effect.Effect<void>
  readonly await: Effect.Effect<AgentResult<O>, E>
  readonly messages: Effect.Effect<ReadonlyArray<Message>>
  readonly undelivered: Effect.Effect<ReadonlyArray<HumanMessage>>
}
