/**
 * Toolkits of `effect/ai` as tools of an agent, and tools of an agent as a toolkit.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool, Toolkit } from "effect/ai"
 * import { Agent } from "effect-deepagents"
 * import * as EffectAiToolkit from "effect-deepagents/models/bridges/EffectAiToolkit"
 *
 * const GetTime = Tool.make("get_time", {
 *   description: "The time in a city",
 *   parameters: Schema.Struct({ city: Schema.String }),
 *   success: Schema.String
 * })
 * const clocks = Toolkit.make(GetTime)
 *
 * const agent = Agent.make({ name: "clerk", prompt: "You tell the time.", tools: EffectAiToolkit.fromToolkit(clocks) })
 * const answer = Agent.run(agent, "What time is it in Oslo?").pipe(
 *   Effect.provide(clocks.toLayer({ get_time: ({ city }) => Effect.succeed(`It is noon in ${city}.`) }))
 * )
 * ```
 */
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Content from "../../core/Content.ts"
import { isObject, Json, type JsonObject } from "../../core/Json.ts"
import { readOptions, refuseTools } from "../../core/schema/invalid.ts"
import * as Tool from "../../core/Tool.ts"
import { ToolError } from "../../core/ToolError.ts"
import * as ToolOutput from "../../core/ToolOutput.ts"
import { check } from "../../support/options/check.ts"
import * as shapes from "../internal/shapes.ts"
import { definitionOf, toAnnotations } from "./internal/effectAi/definitions.ts"
import { callHandler, type ToolkitHandlers } from "./internal/effectAi/handler.ts"
import { shownParts } from "./internal/effectAi/media.ts"

/** Any set of `effect/ai` tools by name. */
type AnyTools = Record<string, AiTool.Any>

/** A call of a tool that its toolkit says needs approval. */
interface ApprovalRequest {
  readonly callId: string
  readonly toolName: string
  readonly arguments: JsonObject
}

/**
 * `approve` decides about calls of tools with `needsApproval`. Without it such a call is refused, and the model is
 * told: the toolkit's gate can't be walked around.
 */
export interface Options<out R = never> {
  /** Decides about calls of tools with `needsApproval`. Default: they are refused. */
  readonly approve?: ((request: ApprovalRequest) => Effect.Effect<boolean, never, R>) | undefined
}

const adapt = <R>(
  tool: AiTool.Any,
  handled: Effect.Effect<ToolkitHandlers, never, R>,
  options: Options<R>
): Tool.Tool<R> => {
  const { name, ...definition } = definitionOf(tool)
  return Tool.dynamic(name, {
    ...definition,
    execute: (args) => Effect.flatMap(handled, (handlers) => callHandler(tool, handlers, args, options.approve))
  })
}

/** Reports whether the agent runs a tool. Providers run their own tools themselves. */
const runsHere = (tool: AiTool.Any): boolean => !AiTool.isProviderDefined(tool) || tool.requiresHandler

const checkOptions = check(shapes.effectAiToolkitFromToolkit)

const adaptAll = <R>(
  tools: AnyTools,
  handled: Effect.Effect<ToolkitHandlers, never, R>,
  given: Options<R> | undefined
): ReadonlyArray<Tool.Tool<R>> => {
  const [options, problem] = readOptions(checkOptions, given ?? {})
  return refuseTools(
    problem,
    Object.values(tools)
      .filter(runsHere)
      .map((tool) => adapt(tool, handled, options))
  )
}

/**
 * Converts the tools of a toolkit to tools of an agent. They require the toolkit's handlers (`toolkit.toLayer(…)`) and
 * the services that the tools declare.
 *
 * The model gets every failure as a result: undecodable arguments, failures of the handler in either mode, unencodable
 * results. Preliminary results become `ToolProgress` events, and `toModelOutput` is honoured.
 */
export const fromToolkit = <Tools extends AnyTools, R = never>(
  toolkit: AiToolkit.Toolkit<Tools>,
  options?: Options<R>
): ReadonlyArray<Tool.Tool<AiTool.HandlersFor<Tools> | AiTool.HandlerServices<Tools[keyof Tools]> | R>> =>
  // A handler is found by name and decodes its arguments, so its type per tool is not needed.
  adaptAll(
    toolkit.tools,
    toolkit as unknown as Effect.Effect<
      ToolkitHandlers,
      never,
      AiTool.HandlersFor<Tools> | AiTool.HandlerServices<Tools[keyof Tools]> | R
    >,
    options
  )

/** The same for a toolkit whose handlers are at hand: `Effect.map(toolkit, fromHandlers)`. */
export const fromHandlers = <Tools extends AnyTools, R = never>(
  handlers: AiToolkit.WithHandler<Tools>,
  options?: Options<R>
): ReadonlyArray<Tool.Tool<AiTool.HandlerServices<Tools[keyof Tools]> | R>> =>
  // As above.
  adaptAll<AiTool.HandlerServices<Tools[keyof Tools]> | R>(
    handlers.tools,
    Effect.succeed(handlers as unknown as ToolkitHandlers),
    options
  )

/** The output of a tool of this library, as the typed result of an `effect/ai` tool. */
const Result = Schema.Struct({ content: Schema.Array(Content.Block), details: Schema.optionalKey(Json) })
type Result = typeof Result.Type

/** A tool of ours as an `effect/ai` tool that needs `R` to be called. It fails with a `ToolError`, as a result. */
export type FromTool<R> = AiTool.Tool<
  string,
  {
    readonly parameters: typeof Schema.Unknown
    readonly success: typeof Result
    readonly failure: typeof ToolError
    readonly failureMode: "return"
  },
  R
>

const emptyResult = Content.text("(The tool gave no output.)")

const toAiTool = <R>(tool: Tool.Tool<R>): FromTool<R> => {
  const aiTool = AiTool.dynamic(tool.name, {
    description: tool.description,
    parameters: tool.parameters,
    success: Result,
    failure: ToolError,
    failureMode: "return",
    // A function that fails counts as "no" there, so all calls of such a tool are asked about.
    ...(tool.needsApproval === true ? { needsApproval: true } : {}),
    toModelOutput: (result: Result) => shownParts(result.content.length === 0 ? [emptyResult] : result.content)
  })
  return aiTool.annotateMerge(toAnnotations(tool.annotations))
}

/** Leaves the cause out of an error for the model: it is for the log. */
const withoutCause = ({ message, reason }: ToolError): ToolError => new ToolError({ reason, message })

const toResult = (tool: Tool.Tool<unknown>, output: ToolOutput.ToolOutput): Effect.Effect<Result, ToolError> => {
  const { content, details, isError } =
    tool.outputLimit === undefined ? output : ToolOutput.truncate(output, tool.outputLimit)
  if (isError) return Effect.fail(new ToolError({ reason: "Failed", message: Content.toText(content) }))
  return Effect.succeed(details === undefined ? { content } : { content, details })
}

const handlerOf =
  <R>(tool: Tool.Tool<R>) =>
  (params: unknown): Effect.Effect<Result, ToolError, R> => {
    if (!isObject(params)) {
      return Effect.fail(
        new ToolError({ reason: "InvalidArguments", message: "The arguments must be one JSON object. Call again." })
      )
    }
    return Effect.mapError(
      Effect.flatMap(Tool.run(tool, params), (output) => toResult(tool, output)),
      withoutCause
    )
  }

/**
 * Converts tools of an agent to an `effect/ai` toolkit with its handlers. The tools' requirements appear at the use of
 * the toolkit (`LanguageModel.generateText({ toolkit, … })`), not at the layer.
 *
 * A failure is a result with `isFailure`, so it never ends a stream. `returnDirect` and state updates have no meaning
 * outside an agent and are dropped. A tool that needs `ToolContext` must get one.
 */
export const toToolkit = <const Tools extends ReadonlyArray<Tool.Tool<unknown>>>(
  tools: Tools
): {
  readonly toolkit: AiToolkit.Toolkit<Record<string, FromTool<Tool.Services<Tools[number]>>>>
  readonly layer: Layer.Layer<AiTool.Handler<string>>
} => {
  const toolkit = AiToolkit.make(
    ...tools.map((tool) =>
      // Each tool needs a part of what all of them need.
      toAiTool(tool as Tool.Tool<Tool.Services<Tools[number]>>)
    )
  )
  const handlers = Object.fromEntries(
    tools.map((tool) => [tool.name, handlerOf(tool as Tool.Tool<Tool.Services<Tools[number]>>)])
  )
  return { toolkit, layer: toolkit.toLayer(handlers) }
}
