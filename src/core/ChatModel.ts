/**
 * The service of every model: makes sessions that turn a full history into one assistant turn.
 *
 * A model holds no conversation. A run makes one session, which gets the whole history each round. So middleware may
 * rewrite the history, and a failed turn can be retried.
 */
import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import * as internal from "../support/effect/asyncIterable.ts"
import { plain, transformPull } from "../support/effect/pulled.ts"
import * as Content from "./Content.ts"
import type { JsonObject } from "./Json.ts"
import type { AiMessage, Message } from "./Message.ts"
import { ModelError } from "./ModelError.ts"
import type { ToolOptions } from "./ProviderOptions.ts"
import type { Annotations } from "./Tool.ts"
import { type Prices, priced, sanitize } from "./Usage.ts"

/**
 * The definition of a tool for the model. `parameters` is a JSON Schema (draft 2020-12) of an object. A `hidden` tool
 * is kept from the model: only other tools can call it (`ToolContext.call`). A tool that a request leaves out can't be
 * called at all.
 */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
  readonly annotations: Annotations
  readonly providerOptions?: ToolOptions | undefined
  readonly hidden?: true | undefined
}

/**
 * The model's choice of tools: decide itself, call none, call at least one, call this one, or call one of these. With
 * the mode `auto` it may also answer. The other tools of the request can't be called, and stay in the provider's cache
 * where its API has this choice (OpenAI, Gemini).
 */
export type ToolChoice =
  | "auto"
  | "none"
  | "required"
  | { readonly tool: string }
  | { readonly oneOf: ReadonlyArray<string>; readonly mode?: "auto" | "required" }

/**
 * A change of the tools inside of a conversation, behind the message at the index `after`: `add` lists new tools, `again`
 * the names of tools of the request that come back, and `remove` the names of tools that go.
 */
export interface ToolChange {
  readonly after: number
  readonly add: ReadonlyArray<ToolDefinition>
  readonly again: ReadonlyArray<string>
  readonly remove: ReadonlyArray<string>
}

/**
 * One request for one turn.
 *
 * `messages` only ever grows at its end during a run, and is the run's own list: take a `slice()` to keep it. `purpose`
 * tells a turn of the conversation from a call that a middleware makes for itself (a summary, a grade). `cacheHints`
 * are the indices of messages after which a provider may set a cache breakpoint. `outputSchema` asks for an answer in
 * that JSON Schema. `parameters` are the provider's own (temperature …). `session` asks another model than the run's
 * own (a fallback): a session that a middleware opened with {@link open}. `callable` are the tools that a call may mean
 * where these are not `tools`: a middleware told of them in another way.
 */
export interface ModelRequest {
  readonly messages: ReadonlyArray<Message>
  readonly systemPrompt: string
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice: ToolChoice
  readonly outputSchema?: JsonObject | undefined
  readonly parameters: JsonObject
  readonly cacheHints: ReadonlyArray<number>
  readonly purpose: string
  /** True for a request of somebody else, such as an MCP server: the answer of the run does not need it. */
  readonly isForeign?: boolean | undefined
  readonly callable?: ReadonlyArray<ToolDefinition> | undefined
  readonly session?: ModelSession | undefined
  /** The `resume` of a `TurnAccepted`, of the same request in a run that a crash ended. */
  readonly resume?: JsonObject | undefined
  /** Has the provider compact the conversation itself at so many tokens. For models with the ability `compaction`. */
  readonly compactAt?: number | undefined
  /** Changes of `tools` inside of the conversation. For models with the ability `toolChanges`. */
  readonly toolChanges?: ReadonlyArray<ToolChange> | undefined
}

/** The purpose of a request that is a turn of the conversation. */
export const turnPurpose = "turn"

/**
 * A piece of a turn as it arrives.
 *
 * - `TurnDone`: the last piece, with the whole message
 * - `TurnRestarted`: all pieces of this turn so far are void (after a retry, a fallback)
 * - `ToolCallStart` with `providerExecuted`: a call that the provider runs itself. The message's `toolCalls` leave it
 *   out, and such a turn is never retried
 * - `TurnAccepted`: the provider makes the turn in the background. The thread keeps `resume`, and a run after a crash
 *   gives it to the same request
 * - `Warning`: becomes an event (an unsupported part of a schema, for example)
 */
export type TurnPart =
  | { readonly _tag: "TextDelta"; readonly text: string }
  | { readonly _tag: "ReasoningDelta"; readonly text: string }
  | { readonly _tag: "ToolCallStart"; readonly id: string; readonly name: string; readonly providerExecuted?: boolean }
  | { readonly _tag: "ToolCallDelta"; readonly id: string; readonly delta: string }
  | { readonly _tag: "TurnRestarted"; readonly reason: string }
  | { readonly _tag: "TurnAccepted"; readonly resume: JsonObject }
  | { readonly _tag: "Warning"; readonly code: string; readonly message: string }
  | { readonly _tag: "TurnDone"; readonly message: AiMessage }

/**
 * One run's line to a model. It may keep a cache as long as that can't be observed. `model` is the model that it leads
 * to; {@link open} sets it.
 */
export interface ModelSession {
  readonly nextTurn: (request: ModelRequest) => Stream.Stream<TurnPart, ModelError>
  readonly model?: Service | undefined
}

/**
 * A thing that a provider can do by itself: find tools whose schemas are not loaded (`toolSearch`), replace the older
 * part of a conversation (`compaction`), take changes of the tools inside of a conversation (`toolChanges`).
 */
export type Ability = "toolSearch" | "compaction" | "toolChanges"

/**
 * A model, as a service.
 *
 * `contextWindowTokens` is `undefined` if unknown. `structuredOutput` is `"native"` if the model honours
 * `outputSchema`, else `"tool"`. `prices` put a cost on usage without one. `reportsCost` is true if answers say what they
 * cost. `abilities` list the work that the provider does by itself.
 */
export class ChatModel extends Context.Service<
  ChatModel,
  {
    readonly modelId: string
    readonly provider: string
    readonly supportsVision: boolean
    readonly contextWindowTokens: number | undefined
    readonly structuredOutput?: "native" | "tool" | undefined
    readonly prices?: Prices | undefined
    readonly reportsCost?: boolean | undefined
    readonly abilities?: ReadonlyArray<Ability> | undefined
    readonly makeSession: Effect.Effect<ModelSession, ModelError, Scope.Scope>
  }
>()("effect-deepagents/ChatModel") {}

/** The service that a {@link ChatModel} layer provides. */
export type Service = ChatModel["Service"]

/** The model of a program without a model: each request fails with `Unsupported`. */
export const absent: Service = {
  modelId: "none",
  provider: "none",
  supportsVision: false,
  contextWindowTokens: undefined,
  makeSession: Effect.suspend(() =>
    Effect.fail(
      new ModelError({
        provider: "none",
        reason: { _tag: "Unsupported" },
        detail: "this program has no ChatModel: provide a model layer, such as ChatModels.resolve"
      })
    )
  )
}

/**
 * Opens a session as the loop does: images are taken out for a model without vision (with a note in their place), usage
 * is priced, and a stream that ends before its `TurnDone` fails with `BadResponse`. A count that is `NaN`, negative or
 * infinite becomes 0, with one `Warning` (`usage`) a session. Middleware that brings a model of its own opens it with this.
 */
export const open = (model: Service): Effect.Effect<ModelSession, ModelError, Scope.Scope> =>
  Effect.map(model.makeSession, (session) => {
    const complete = whole(model)
    if (model.supportsVision) return { model, nextTurn: (request: ModelRequest) => complete(session.nextTurn(request)) }
    const remove = makeImageRemover()
    return {
      model,
      nextTurn: (request: ModelRequest) =>
        complete(session.nextTurn({ ...request, messages: remove(request.messages) }))
    }
  })

/** The failure of a turn that ended without its `TurnDone`. */
export const incomplete = ({ modelId, provider }: Pick<Service, "modelId" | "provider">): ModelError =>
  new ModelError({
    provider,
    model: modelId,
    reason: { _tag: "BadResponse" },
    detail: "the stream ended before the turn was complete"
  })

/**
 * Turns a provider's async iterable into a stream of parts: pumped in plain JavaScript, delivered in whatever arrays
 * have gathered, at most 256 parts ahead of the reader. The iterator is returned (which closes an HTTP response) when
 * the stream is left early.
 */
export const fromAsyncIterable: <A, E>(
  make: (signal: AbortSignal) => AsyncIterable<A>,
  onError: (cause: unknown) => E
) => Stream.Stream<A, E> = internal.fromAsyncIterable

/** Stands in the place of an image for a model without vision. */
const imagePlaceholder = "[An image was here. This model cannot see images.]"

const withoutImages = (message: Message): Message =>
  message.content.some((block) => block.type === "image")
    ? {
        ...message,
        content: message.content.map((block) => (block.type === "image" ? Content.text(imagePlaceholder) : block))
      }
    : message

/** Rewrites new messages only: the history of a run grows at its end. */
const makeImageRemover = () => {
  let source: ReadonlyArray<Message> = []
  let view: Array<Message> = []
  return (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
    if (messages !== source) {
      source = messages
      view = []
    }
    for (let index = view.length; index < messages.length; index++) {
      const message = messages[index]
      if (message !== undefined) view.push(withoutImages(message))
    }
    return view
  }
}

const unsound = ({ modelId }: Service): TurnPart => ({
  _tag: "Warning",
  code: "usage",
  message: `"${modelId}" reports a usage that is not a number of tokens or a cost of at least 0; it is counted as 0, so budgets of tokens and cost don't see it. Correct its layer.`
})

/** A stream that ends without its last part is a broken one, however much text came. */
const whole = (model: Service) => {
  const { prices } = model
  let warned = false
  return (turn: Stream.Stream<TurnPart, ModelError>): Stream.Stream<TurnPart, ModelError> =>
    plain(
      transformPull(turn, (pull) => {
        let isDone = false
        const check = (parts: Array.NonEmptyReadonlyArray<TurnPart>): Array.NonEmptyReadonlyArray<TurnPart> => {
          const last = parts[parts.length - 1]
          if (last?._tag !== "TurnDone") return parts
          isDone = true
          const { usage } = last.message
          if (usage === undefined) return parts
          const sound = sanitize(usage)
          const pricedUsage = prices === undefined ? sound : sanitize(priced(sound, prices))
          if (pricedUsage === usage) return parts
          const message = { ...last.message, usage: pricedUsage }
          const completed = Array.map(parts, (part) => (part === last ? { ...last, message } : part))
          if (sound === usage || warned) return completed
          warned = true
          return Array.prepend(completed, unsound(model))
        }
        const next = Effect.catchCause(Effect.map(pull, check), (cause) =>
          !isDone && Pull.isDoneCause(cause) ? Effect.fail(incomplete(model)) : Effect.failCause(cause)
        )
        // A source that goes on after its turn is done (with an open connection, for one) is not waited for.
        return Effect.suspend(() => (isDone ? Cause.done() : next))
      })
    )
}
