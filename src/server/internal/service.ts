/** The service of runs, and its failures. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { Decision, Request } from "../../core/Approval.ts"
import type { HumanMessage } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import { TaggedError } from "../../support/effect/taggedError.ts"
import type { AppCall } from "./apps/calls.ts"
import type { Frame, Position } from "./position.ts"
import type { ThreadRef } from "./tenant.ts"

/**
 * A run could not be started, or talked to.
 *
 * - `Busy`: a run is at work on the thread, and the input was not to wait
 * - `NotFound`: there is no such thread or request
 * - `NotRunning`: no run is at work that could be steered
 * - `Conflict`: another input had this id
 * - `InvalidInput`: the input, the id or the decision is wrong
 * - `TooMany`: as many runs as the server takes are at work
 * - `Unavailable`: the mailbox can't be reached, or another process has it (`retryAfter` seconds); nothing was taken
 */
export class RunsError extends TaggedError<RunsError>()("RunsError", {
  reason: Schema.Literals(["Busy", "NotFound", "NotRunning", "Conflict", "InvalidInput", "TooMany", "Unavailable"]),
  threadId: Schema.String,
  problem: Schema.String,
  retryAfter: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    return this.problem
  }
}

/** A taken input or decision. `isNew` is `false` for a repetition. Events behind `position` are those of its run. */
export interface Acceptance {
  readonly id: string
  readonly position: Position
  readonly isNew: boolean
}

/** The state of a thread. */
export interface Status {
  readonly state: "idle" | "working" | "waiting"
  /** The requests that wait for a decision. One whose decision was taken waits no longer. */
  readonly pending: ReadonlyArray<Request>
  /** The end of the events so far. */
  readonly position: Position
  /** The input at work, and the position before its run. Absent for the work on a decision. */
  readonly input?: { readonly id: string; readonly position: Position }
  /** The ids of the inputs that wait for their runs. */
  readonly queued: ReadonlyArray<string>
}

/** An agent of the server. */
export interface AgentInfo {
  /** The name by which inputs ask for it. */
  readonly name: string
  readonly description?: string | undefined
}

export interface Input {
  /** The name of the agent, as the layer of runs has it. */
  readonly agent: string
  /** The input: a text or a message. */
  readonly input: string | HumanMessage
  /** Identifies the input: repeating it has no effect. Default: a random one. */
  readonly id?: string | undefined
  /**
   * The model of the thread from its next run on, by its name in the layer; `null` is the model of the layer. Default: the
   * choice of an earlier input.
   */
  readonly model?: string | null | undefined
  /**
   * The mode of this input, and of the thread from its next run on, by its name in the layer; `null` is the first one.
   * Default: the choice of an earlier input.
   */
  readonly mode?: string | null | undefined
  /**
   * The level of thinking of the thread from its next run on; `null` is the model's own. Default: the choice of an earlier
   * input.
   */
  readonly thinking?: string | null | undefined
  /**
   * The call of an interface (MCP Apps) that the input stands for. Its run makes the call in place of the model's first turn,
   * through all gates of the agent, and the model is not asked. For agents without a model of their own. Default: none.
   */
  readonly call?: AppCall | undefined
  /** Decides about an input while a run is at work: it waits, or fails with `Busy`. Default: `"queue"`. */
  readonly busy?: "queue" | "refuse" | undefined
}

/** Runs that belong to the server, and not to who started or watches them. */
export class Runs extends Context.Service<
  Runs,
  {
    /** The agents that take inputs. */
    readonly agents: ReadonlyArray<AgentInfo>
    /** The names of the models that an input may choose. */
    readonly models: ReadonlyArray<string>
    /** The names of the modes that an input may choose. The first is the default. */
    readonly modes: ReadonlyArray<string>
    /** The levels of thinking that an input may choose. */
    readonly thinking: ReadonlyArray<string>
    /** Takes an input. It is stored when this returns, and its run begins after those before it. */
    readonly start: (thread: ThreadRef, input: Input) => Effect.Effect<Acceptance, RunsError | SessionError>
    /**
     * Decides pending requests in the name of the thread's principal, and resumes. A repeated decision has no effect.
     * No decision at all resumes a failed or interrupted thread.
     */
    readonly decide: (
      thread: ThreadRef,
      decisions: ReadonlyArray<Decision>
    ) => Effect.Effect<Acceptance, RunsError | SessionError>
    /** Sends a message into the run at work. */
    readonly steer: (thread: ThreadRef, input: string | HumanMessage) => Effect.Effect<void, RunsError>
    /** Ends the run at work; inputs behind it stay. `false`: none is at work. */
    readonly cancel: (thread: ThreadRef) => Effect.Effect<boolean, RunsError>
    /** Gives the state of a thread without reading it, also of a missing thread. */
    readonly state: (thread: ThreadRef) => Effect.Effect<Status["state"], RunsError | SessionError>
    readonly status: (thread: ThreadRef) => Effect.Effect<Status, RunsError | SessionError>
    /**
     * Streams the frames behind a position, each once and in order; by default from the beginning of the thread. Ends
     * when the thread is idle, or never with `follow`. A slow reader does not slow the run.
     */
    readonly observe: (
      thread: ThreadRef,
      options?: {
        /** The position of the last frame that the reader has. Default: none. */
        readonly after?: Position | undefined
        /** Goes on when the thread is idle. Default: `false`. */
        readonly follow?: boolean | undefined
      }
    ) => Stream.Stream<Frame, RunsError | SessionError>
  }
>()("effect-deepagents/Runs") {}
