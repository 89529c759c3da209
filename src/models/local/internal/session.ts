/** One run's line to a model in memory. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { LlamaContext, LlamaGrammar, Token } from "node-llama-cpp"
import type { ModelRequest, ModelSession, ToolDefinition, TurnPart } from "../../../core/ChatModel.ts"
import * as Content from "../../../core/Content.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import * as Usage from "../../../core/Usage.ts"
import { toolSchema } from "../../internal/schema/toolSchema.ts"
import { narrow } from "../../internal/turn/choice.ts"
import type { Dialect } from "../../internal/turn/dialect.ts"
import { makeNormalizer, type Turn } from "../../internal/turn/normalize.ts"
import { makeToolNames, type ToolNames } from "../../internal/turn/toolNames.ts"
import { wellFormed } from "../../internal/turn/wellFormed.ts"
import { makeSchemaWarner } from "../../internal/wire/warned.ts"
import { makeAssembler } from "./assemble.ts"
import type { CallWatch } from "./callWatch.ts"
import type { Engine } from "./engine.ts"
import { errorOf, type Origin, turnError } from "./errors.ts"
import { adapt, unheldIn } from "./grammarSchema.ts"
import type { Pool, Seat } from "./pool.ts"
import { type Restore, commonPrefix as sharedBy } from "./prefixes.ts"
import { type Settings, settingsFor } from "./settings.ts"
import type { LocalRequest, PreparedTurn } from "./turn.ts"

/** Resources that all sessions of a model share. */
export interface SharedResources {
  readonly origin: Origin
  readonly engine: Engine
  readonly context: LlamaContext
  readonly pool: Pool
  readonly settings: Settings
  readonly callWatch: CallWatch
  /** Puts the beginning of a prompt into a sequence, from the disk if it is there. */
  readonly restore: Restore | undefined
  /** Prepares turns by the model's codec or its chat wrapper. */
  readonly makePrepare: () => (prompt: LocalRequest, grammar: LlamaGrammar | undefined) => PreparedTurn
}

const defaultMaxTokens = 4096

const nameLimit = 64

/** Gives the parts of a history that these models take. */
export const dialectOf = (origin: Origin): Dialect => ({
  provider: origin.provider,
  systemMessages: "fold",
  reasoning: "own",
  media: () => false,
  toolMedia: "inline",
  humanFirst: true,
  humanLast: true,
  callIdLength: nameLimit
})

/** Calls by the names that the model is told. */
const renamed = (turns: ReadonlyArray<Turn>, names: ToolNames): ReadonlyArray<Turn> =>
  turns.map((turn) =>
    turn.role === "ai" && turn.calls.some((call) => names.wire(call.name) !== call.name)
      ? { ...turn, calls: turn.calls.map((call) => ({ ...call, name: names.wire(call.name) })) }
      : turn
  )

/** The parameters of tools as models are told them. */
const parameters = new WeakMap<JsonObject, JsonObject>()

const toldOf = (tool: ToolDefinition, names: ToolNames): ToolDefinition => {
  const schema = parameters.get(tool.parameters) ?? toolSchema(tool.parameters, "openai")
  parameters.set(tool.parameters, schema)
  return { ...tool, name: names.wire(tool.name), description: wellFormed(tool.description), parameters: schema }
}

/** Gives the longest that the turn may be, in tokens; fails if its prompt leaves no room for an answer. */
const limitOf = (
  shared: SharedResources,
  prepared: PreparedTurn,
  maxTokens: number
): Effect.Effect<number, ModelError> => {
  const { contextSize } = shared.context
  const used = prepared.tokens.length
  const room = contextSize - 1 - used - prepared.slack
  const least = Math.min(maxTokens, Math.max(16, Math.min(256, Math.floor(contextSize / 8))))
  return room < least
    ? Effect.fail(
        errorOf(
          shared.origin,
          { _tag: "ContextOverflow", limit: contextSize, used },
          `the prompt has ${used} tokens, the context ${contextSize}, and an answer needs some of them`
        )
      )
    : Effect.succeed(Math.min(maxTokens, room))
}

/** Opens a session. */
export const open = (shared: SharedResources): Effect.Effect<ModelSession, never, Scope.Scope> =>
  Effect.suspend(() => {
    const { engine, origin, pool } = shared
    const normalize = makeNormalizer(dialectOf(origin))
    const prepare = shared.makePrepare()
    const owner = {}
    const warn = makeSchemaWarner(origin)

    const grammarFor = (schema: JsonObject | undefined): Effect.Effect<LlamaGrammar | undefined, ModelError> =>
      schema === undefined
        ? Effect.undefined
        : Effect.tryPromise({
            try: () => engine.llama.createGrammarForJsonSchema(adapt(schema, { nulls: false }).schema),
            catch: (cause) =>
              errorOf(origin, { _tag: "Unsupported" }, "no grammar can be made of the output schema", cause)
          })

    const prepared = Effect.fnUntraced(function* (fullRequest: ModelRequest, names: ToolNames) {
      const request = narrow(fullRequest)
      const settings = yield* settingsFor(origin, shared.settings, request.parameters)
      const { system, turns } = normalize(request.messages)
      const tools = request.toolChoice === "none" ? [] : request.tools
      const { toolChoice } = request
      const prompt: LocalRequest = {
        systemPrompt: [wellFormed(request.systemPrompt), ...system].filter((text) => text !== "").join("\n\n"),
        turns: renamed(turns, names),
        tools: tools.map((tool) => toldOf(tool, names)),
        toolChoice: typeof toolChoice === "string" ? toolChoice : { tool: names.wire(toolChoice.tool) },
        outputSchema: tools.length === 0 ? request.outputSchema : undefined,
        settings
      }
      const grammar = yield* grammarFor(prompt.outputSchema)
      const turn = yield* Effect.try({ try: () => prepare(prompt, grammar), catch: turnError(origin) })
      return { prompt, turn, limit: yield* limitOf(shared, turn, settings.maxTokens ?? defaultMaxTokens) }
    })

    /** Beginning of all conversations with this system prompt and these tools: where two others agree. */
    const beginningOf = ({ tokens }: PreparedTurn, prompt: LocalRequest): ReadonlyArray<Token> => {
      const [one = [], other = []] = ["0", "Z"].map((text) => {
        const human = { role: "human" as const, content: [Content.text(text)], index: 0 }
        return prepare({ ...prompt, turns: [human] }, undefined).tokens
      })
      return sharedBy(sharedBy(one, other), tokens)
    }

    /** A beginning that can't be kept is read, as it would be without a folder. */
    const restored = Effect.fnUntraced(function* (seat: Seat, turn: PreparedTurn, prompt: LocalRequest) {
      const { restore } = shared
      if (restore === undefined) return
      const commonLength = seat.sequence.compareContextTokens([...turn.tokens]).firstDifferentIndex
      if (commonLength > turn.tokens.length / 2) return
      const beginning = beginningOf(turn, prompt)
      yield* Effect.catch(
        Effect.tryPromise((signal) => seat.work(signal, (stop) => restore(seat.sequence, beginning, stop))),
        ({ cause }) => Effect.logWarning("The beginning of a prompt could not be kept on disk", cause)
      )
    })

    const nextTurn = (request: ModelRequest): Stream.Stream<TurnPart, ModelError> =>
      // The queue holds a turn at most, and `maxTokens` bounds that.
      Stream.callback<TurnPart, ModelError>((queue) =>
        Effect.gen(function* () {
          const names = makeToolNames(request.tools, nameLimit)
          const assembler = makeAssembler(origin, yield* IdGenerator, names)
          const warning = warn(request.outputSchema === undefined ? [] : unheldIn(request.outputSchema))
          if (warning !== undefined) Queue.offerUnsafe(queue, warning)
          const { prompt, limit, turn } = yield* prepared(request, names)
          const seat = yield* pool.lease(owner, turn.tokens)
          const meter = seat.sequence.tokenMeter
          const before = meter.getState()
          yield* restored(seat, turn, prompt)
          const finish = yield* Effect.tryPromise({
            try: (signal) =>
              seat.work(signal, (stop) =>
                turn.generate(seat.sequence, limit, stop, (delta) => {
                  const part = assembler.take(delta)
                  if (part !== undefined) Queue.offerUnsafe(queue, part)
                })
              ),
            catch: turnError(origin)
          })
          const { usedInputTokens, usedOutputTokens } = meter.diff(before)
          const inputTokens = turn.tokens.length
          const usage = Usage.make({
            inputTokens,
            // The last token of a prompt is always computed: it counts with the output.
            cacheReadTokens: Math.max(0, inputTokens - 1 - usedInputTokens),
            outputTokens: usedOutputTokens,
            reasoningTokens: finish.reasoningTokens
          })
          const message = assembler.message(finish, usage)
          // Behind a result, and where it may not, a model has reason to call nothing.
          const isOffered = request.tools.length > 0 && request.toolChoice === "auto"
          const uncalled = shared.callWatch(isOffered && request.messages.at(-1)?.role === "human", message)
          if (uncalled !== undefined) Queue.offerUnsafe(queue, uncalled)
          Queue.offerUnsafe(queue, { _tag: "TurnDone", message })
          Queue.endUnsafe(queue)
        })
      )

    return Effect.as(
      Effect.addFinalizer(() => Effect.sync(() => pool.forget(owner))),
      { nextTurn }
    )
  })
