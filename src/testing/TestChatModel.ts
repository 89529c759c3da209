/**
 * Provides a scripted model. It answers turn by turn from a script, or by a function of the request.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const greeter = Agent.make({ name: "greeter", prompt: "Greet whoever writes." })
 *
 * const test = Effect.gen(function* () {
 *   const result = yield* Agent.run(greeter, "I am Ada")
 *   const [first] = yield* TestChatModel.requests
 *   return [result.text, first?.systemPrompt]
 * }).pipe(Effect.provide(TestChatModel.script(["Hello, Ada!"])))
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { ChatModel, type ModelRequest, type TurnPart } from "../core/ChatModel.ts"
import { IdGenerator } from "../core/IdGenerator.ts"
import * as Message from "../core/Message.ts"
import { ModelError, type Reason } from "../core/ModelError.ts"
import type { Prices } from "../core/Usage.ts"
import type { AnswerOptions, Call, Chunking, Pacing, Turn } from "./internal/turn.ts"
import * as turns from "./internal/turn.ts"

export type { AnswerOptions, Call, Chunking, Pacing } from "./internal/turn.ts"

export type { Turn } from "./internal/turn.ts"

/** Makes a text answer. Each element of an array is a delta. */
export const text = (value: string | ReadonlyArray<string>, options?: AnswerOptions): Turn => ({
  _tag: "Answer",
  text: value,
  calls: [],
  options: options ?? {}
})

/** Makes a turn that calls tools. `text` comes before the calls. */
export const calls = (
  value: ReadonlyArray<Call>,
  options?: AnswerOptions & {
    /** A text before the calls. Default: none. */
    readonly text?: string | ReadonlyArray<string> | undefined
  }
): Turn => ({ _tag: "Answer", text: options?.text ?? "", calls: value, options: options ?? {} })

/** Makes a turn with one malformed tool call. `raw` is the text of the model. */
export const malformed = (
  raw: string,
  options?: AnswerOptions & {
    /** The name of the tool. Default: none could be read. */
    readonly name?: string | undefined
    /** The id of the call. Default: a new one. */
    readonly id?: string | undefined
    /** The reason that the call can't be read. Default: it is not JSON. */
    readonly problem?: string | undefined
  }
): Turn => {
  const { id, name, problem, ...rest } = options ?? {}
  return calls([{ raw, id, name, problem }], rest)
}

/** Makes a turn that ends in exactly this message. */
export const message = (value: Message.AiMessage, options?: Chunking): Turn => ({
  _tag: "Message",
  message: value,
  options: options ?? {}
})

/** Makes a turn of exactly these parts. Without a final `TurnDone`, the stream breaks off. */
export const parts = (value: ReadonlyArray<TurnPart>, options?: Pacing): Turn => ({
  _tag: "Parts",
  parts: value,
  end: "end",
  options: options ?? {}
})

const partsOf = (after: string | ReadonlyArray<TurnPart> | undefined): ReadonlyArray<TurnPart> =>
  typeof after === "string" ? [{ _tag: "TextDelta", text: after }] : (after ?? [])

/**
 * Makes a turn that fails after the text or parts of `after`. A reason alone makes an error of this model:
 * `TestChatModel.fail({ _tag: "Overloaded" })`.
 */
export const fail = (
  error: ModelError | Reason,
  options?: Pacing & {
    /** Text or parts before the failure. Default: none. */
    readonly after?: string | ReadonlyArray<TurnPart> | undefined
  }
): Turn => ({ _tag: "Parts", parts: partsOf(options?.after), end: error, options: options ?? {} })

/** Makes a turn that streams a text or parts, and never ends. */
export const hangAfter = (after: string | ReadonlyArray<TurnPart>, options?: Pacing): Turn => ({
  _tag: "Parts",
  parts: partsOf(after),
  end: "hang",
  options: options ?? {}
})

/** A turn that streams nothing and never ends, for interruptions and timeouts. */
export const hang: Turn = hangAfter([])

/** Properties of the scripted model. */
export interface Options {
  /** Default: `"scripted"`. */
  readonly modelId?: string | undefined
  /** Default: `"test"`. */
  readonly provider?: string | undefined
  /** Default: `true`. */
  readonly supportsVision?: boolean | undefined
  /** The model's window in tokens. Default: unknown. */
  readonly contextWindowTokens?: number | undefined
  /** `"native"` requests JSON, `"tool"` a call of `final_answer`. Default: `"native"`. */
  readonly structuredOutput?: "native" | "tool" | undefined
  /** Prices of a million tokens. Default: unknown. */
  readonly prices?: Prices | undefined
}

/** Records the requests to the scripted model, and counts the unused turns of its script. */
export class TestModel extends Context.Service<
  TestModel,
  {
    readonly requests: Effect.Effect<ReadonlyArray<ModelRequest>>
    readonly unused: Effect.Effect<number>
  }
>()("effect-deepagents/testing/TestModel") {}

/** Returns the requests to the scripted model so far. */
export const requests: Effect.Effect<ReadonlyArray<ModelRequest>, never, TestModel> = TestModel.use(
  (model) => model.requests
)

/** Returns the number of unused turns of the script; 0 for {@link reactive}. */
export const unused: Effect.Effect<number, never, TestModel> = TestModel.use((model) => model.unused)

const describe = (last: Message.Message | undefined): string => {
  if (last === undefined) return "there was no message"
  const content = Message.text(last)
  const by = last.role === "tool" ? `tool "${last.toolName}"` : last.role
  return `the last message was (${by}): ${content.length > 200 ? `${content.slice(0, 200)}…` : content}`
}

const make = (options: Options, next: (request: ModelRequest, index: number) => Turn | undefined, total: number) =>
  Effect.gen(function* () {
    const modelId = options.modelId ?? "scripted"
    const provider = options.provider ?? "test"
    const recordedRequests: Array<ModelRequest> = []
    let callCount = 0

    const nextTurn = (request: ModelRequest): Stream.Stream<TurnPart, ModelError> =>
      Stream.unwrap(
        Effect.map(IdGenerator, (messageId) => {
          const recorded = { ...request, messages: request.messages.slice() }
          const turn = next(recorded, recordedRequests.length)
          recordedRequests.push(recorded)
          if (turn === undefined) {
            return Stream.fail(
              new ModelError({
                provider,
                model: modelId,
                reason: { _tag: "InvalidRequest" },
                detail: `the script has ${total} turn${total === 1 ? "" : "s"} and was asked for turn ${recordedRequests.length}; ${describe(recorded.messages.at(-1))}`
              })
            )
          }
          return turns.play(turn, recorded, { modelId, provider, messageId, callId: () => `call-${++callCount}` })
        })
      )

    const unused = Effect.sync(() => Math.max(0, total - recordedRequests.length))
    const model = ChatModel.of({
      modelId,
      provider,
      supportsVision: options.supportsVision ?? true,
      contextWindowTokens: options.contextWindowTokens,
      structuredOutput: options.structuredOutput ?? "native",
      prices: options.prices,
      makeSession: Effect.succeed({ nextTurn })
    })
    const recorder = TestModel.of({ requests: Effect.sync(() => recordedRequests.slice()), unused })
    return { context: Context.make(ChatModel, model).pipe(Context.add(TestModel, recorder)), unused }
  })

/**
 * Provides a model that plays one turn for each request, of any agent, in order. A request beyond the script fails with a
 * `ModelError`. An unused turn fails a test that otherwise succeeds, by a defect when the layer is released;
 * `exhaustive: false` allows unused turns.
 *
 * The script starts over each time the layer is built: with `Effect.provide` once a test, with `Agent.provide` once a run.
 */
export const script = (
  value: ReadonlyArray<Turn>,
  options?: Options & {
    /** Fails the test if a turn is left over. Default: `true`. */
    readonly exhaustive?: boolean | undefined
  }
): Layer.Layer<ChatModel | TestModel> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { context, unused } = yield* make(options ?? {}, (_, index) => value[index], value.length)
      if (options?.exhaustive === false) return context
      yield* Effect.addFinalizer((exit) =>
        Effect.flatMap(unused, (count) =>
          count === 0 || Exit.isFailure(exit)
            ? Effect.void
            : Effect.die(
                new Error(
                  `TestChatModel: ${count} of the script's ${value.length} turns were never asked for. Take them out, or give the script { exhaustive: false }.`
                )
              )
        )
      )
      return context
    })
  )

/** Provides a model that answers each request by a function. `index` counts requests from 0. */
export const reactive = (
  respond: (request: ModelRequest, index: number) => Turn,
  options?: Options
): Layer.Layer<ChatModel | TestModel> =>
  Layer.effectContext(Effect.map(make(options ?? {}, respond, 0), (it) => it.context))
