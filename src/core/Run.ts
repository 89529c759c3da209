/** A run, as middleware and stop conditions see it. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Of } from "./AgentEvent.ts"
import type { Store } from "./AgentState.ts"
import type * as ChatModel from "./ChatModel.ts"
import type { Json } from "./Json.ts"
import type { AiMessage, Message } from "./Message.ts"
import type { ModelError } from "./ModelError.ts"
import type { Spent, Usage } from "./Usage.ts"

/** An event of another program that works for a run, without its place in the stream. */
export type RelayedEvent = {
  readonly [Tag in RelayedTag]: Omit<Of<Tag>, "at" | "path" | "runId" | "seq">
}[RelayedTag]

type RelayedTag = "ReasoningDelta" | "StateChanged" | "TextDelta" | "ToolCalled" | "ToolCompleted" | "ToolFailed"

/**
 * One run of one agent. Its properties are read at the moment of access.
 *
 * - `round`: the number of begun rounds, 0 before the first
 * - `offered`: the tools that the model saw in this round
 * - `messages`: the history and the messages since; it only grows at its end
 * - `usage`: the usage of this run and its sub-agents so far, with retries and side calls
 * - `call`: asks the model a side question (a summary, a grade) through the same middleware, without events and without
 *   a change of the conversation. Its `purpose` is not `"turn"`, so middleware that rewrites turns ignores it. It fails
 *   with `ModelError`, or ends the run with the failure of a middleware
 * - `model`: `undefined` in a program (`Agent.program`) without a model
 */
export interface Run {
  readonly agent: string
  readonly path: ReadonlyArray<string>
  readonly runId: string
  readonly threadId: string | undefined
  readonly model: ChatModel.Service | undefined
  readonly round: number
  readonly offered: ReadonlyArray<ChatModel.ToolDefinition>
  readonly messages: ReadonlyArray<Message>
  readonly usage: Usage
  /**
   * The work since the input of this run, its sub-agents included, counted on when the run is resumed. `time` is that of
   * earlier runs of the same input.
   */
  readonly spent: Spent
  /** The run that this one is inside of; `undefined` for the outermost. */
  readonly parent: Run | undefined
  readonly state: Store
  /** Milliseconds since the epoch at which the outermost run of this tree began. */
  readonly startedAt: number
  /** Closes when the run ends, for any reason. Use it for a middleware's resources of one run. */
  readonly scope: Scope.Scope
  /** The number of agents above this one. */
  readonly depth: number
  /** Emits a `Warning`. `data` has its facts for programs. */
  readonly warn: (code: string, message: string, data?: Json) => Effect.Effect<void>
  readonly custom: (name: string, payload: Json) => Effect.Effect<void>
  /** Reports that the model's view of the history became shorter: a `Compacted` event, in estimated tokens. */
  readonly compacted: (tokensBefore: number, tokensAfter: number) => Effect.Effect<void>
  /** The milliseconds that a call of the run, or the run, spent waiting for people: they are no working time. */
  readonly waited: (callId?: string) => Effect.Effect<number>
  /** Counts work that was done beside this run and for it, and stores the count with the thread. */
  readonly charge: (work: Partial<Omit<Spent, "time">>) => Effect.Effect<void>
  /** Counts usage of a model that another program asked for this run, here and in all runs above. */
  readonly count: (usage: Usage) => Effect.Effect<void>
  /** Reports what another program says and does for this run, as events of it. */
  readonly relay: (event: RelayedEvent) => Effect.Effect<void>
  readonly call: (
    request: Partial<ChatModel.ModelRequest> & Pick<ChatModel.ModelRequest, "messages" | "purpose">
  ) => Effect.Effect<AiMessage, ModelError, ChatModel.ChatModel>
}

/**
 * The run that a fiber works for, `undefined` outside of any: for layers whose services act on the run that uses them.
 */
export const CurrentRun = Context.Reference<Run | undefined>("effect-deepagents/CurrentRun", {
  defaultValue: () => undefined
})
