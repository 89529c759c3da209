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
import type { Checkpoint, Decided, Resume } from "./Checkpoint.ts"
import type * as Content from "./Content.ts"
import type { Journal } from "./Journal.ts"
import type { HumanMessage, Message } from "./Message.ts"

/** An input: a text, one message, several, or a resumption (`Checkpoint.resume`). */
export type Input = string | HumanMessage | ReadonlyArray<Message> | Resume

/**
 * The options of a run beside its input. `history` is the conversation so far, `state` a snapshot to go on from, both
 * as an earlier result gave them. Calls in the history that were never answered are answered so that any provider
 * accepts it: with what the state knows of them if they waited for a decision, else that their outcome is not known.
 * Requests that waited are void with a new input.
 *
 * A run with a `threadId` needs a `Journal`: history and state are what the thread has come to, and what the run
 * adds is stored step by step. `input` is always what is new.
 */
export interface RunOptions {
  readonly history?: ReadonlyArray<Message> | undefined
  readonly state?: Snapshot | undefined
  readonly threadId?: string | undefined
}

/** The checkpoint or the thread that is resumed, and the decisions since. */
export type ResumeOptions = Decided & ({ readonly checkpoint: Checkpoint } | { readonly threadId: string })

const NoSuchOption = "~effect-deepagents/NoSuchOption"

/** The type that no value has which is given for an option that there is none of, so that the compiler names it. */
export interface NoSuchOption<out Message extends string> {
  readonly [NoSuchOption]: Message
}

type KeyOf<T> = T extends object ? keyof T : never

/** Options that are none of those `Known` are refused: a misspelt one would be left out silently. */
export type Only<Options, Known = RunOptions, Where extends string = ""> = {
  readonly [Key in Exclude<KeyOf<Options>, KeyOf<Known>>]: NoSuchOption<`There is no option "${Where}${Key & string}".`>
}

/** The services that options of a run need. */
export type Needs<Options> = Options extends { readonly threadId: string } ? Journal : never

/**
 * A running agent.
 *
 * `events` may be read any number of times at once; each reader gets everything from the moment it subscribed (after the
 * end: the terminal event), and the
 * slowest sets the pace. `steer` puts a message in at the next safe place (never between a call and its result),
 * `followUp` after the final answer, which then is not the last one; both fail if the run is over. What was accepted
 * but not delivered when a run was ended by force is in `undelivered`. `messages` is the conversation as it stands,
 * valid for a next run as soon as the run is over, however it ended.
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
