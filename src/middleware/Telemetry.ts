/**
 * Trace and measure agents by OpenTelemetry's conventions for generative AI: spans and metrics of runs, model calls and
 * tools.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Telemetry } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({ name: "traced", prompt: "You answer questions.", middleware: [Telemetry.make()] })
 * ```
 *
 * They go to Effect's tracer and metrics: export them with a layer of `effect/observability` or
 * `@effect/opentelemetry`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import type { ModelRequest, TurnPart } from "../core/ChatModel.ts"
import type { AiMessage } from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Usage from "../core/Usage.ts"
import * as Attached from "../support/effect/attached.ts"
import { defined } from "../support/json/defined.ts"
import * as GenAi from "./internal/genAi.ts"
import * as shapes from "./internal/shapes.ts"

const name = "Telemetry"

type Attributes = Record<string, unknown>

const setAll = (span: Tracer.Span, attributes: Attributes): void => {
  for (const key in attributes) if (attributes[key] !== undefined) span.attribute(key, attributes[key])
}

/** Removes unknown attributes. */
const definedOnly = (attributes: Record<string, string | undefined>): Record<string, string> => {
  const fields: Record<string, string> = {}
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) fields[key] = value
  return fields
}

const measure = (metric: Metric.Histogram<number>, value: number, attributes: Record<string, string | undefined>) =>
  Metric.update(Metric.withAttributes(metric, definedOnly(attributes)), value)

/** An open span. `elapsed` is in seconds; `end` receives the measurements. */
interface OpenSpan {
  readonly span: Tracer.Span
  readonly elapsed: () => number
  readonly end: (
    exit: Exit.Exit<unknown, unknown>,
    measures: (elapsed: number, error: string | undefined) => Effect.Effect<void>
  ) => Effect.Effect<void>
}

const open = Effect.fnUntraced(function* (name: string, options: Tracer.SpanOptionsNoTrace) {
  const clock = yield* Clock.Clock
  const since = clock.currentTimeNanosUnsafe()
  const span = yield* Effect.makeSpan(name, options)
  const elapsed = () => Number(clock.currentTimeNanosUnsafe() - since) / 1e9
  return {
    span,
    elapsed,
    end: (exit, measures) =>
      Effect.suspend(() => {
        const error = GenAi.errorType(exit)
        if (error !== undefined) span.attribute("error.type", error)
        const measurement = measures(elapsed(), error)
        span.end(clock.currentTimeNanosUnsafe(), exit)
        return measurement
      })
  } satisfies OpenSpan
})

const refuseMake = makeMiddlewareCheck(name, shapes.telemetryMake)

/**
 * Makes spans `invoke_agent {agent}` (a run), `chat {model}` (a model call) and `execute_tool {tool}`, and the metrics
 * `gen_ai.client.token.usage`, `gen_ai.client.operation.duration`, `gen_ai.invoke_agent.duration` and
 * `gen_ai.execute_tool.duration`. Sub-agents inherit it: their run is a child of its tool call. Names follow the
 * semantic conventions of GenAI (2026, in development). `error.type` is the reason of a `ModelError` or `ToolError`,
 * else the error's tag, `interrupted`, or `_OTHER`.
 *
 * Spans exclude texts by default: prompts, messages, arguments and results may be confidential. `captureContent`
 * includes them.
 *
 * First in the stack, a span covers a call with all its retries; last, each try has a span.
 */
export const make = (options?: {
  /** Includes prompts, messages, arguments and results in spans. Default: `false`. */
  readonly captureContent?: boolean | undefined
}): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const capture = options?.captureContent ?? false
  const runs = Attached.make<Run, Tracer.Span>()

  const parentOf = (run: Run): { readonly parent?: Tracer.Span | undefined } => {
    const parent = runs.get(run)
    return parent === undefined ? {} : { parent }
  }

  const common = (operation: string, run: Run, model = run.model): Attributes =>
    defined({
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": model?.provider,
      "gen_ai.agent.name": run.agent,
      "gen_ai.conversation.id": run.threadId
    })

  const beforeAgent = Effect.fnUntraced(function* (run: Run) {
    const model = { "gen_ai.request.model": run.model?.modelId }
    const { end, span } = yield* open(`invoke_agent ${run.agent}`, {
      kind: "internal",
      attributes: { ...common("invoke_agent", run), ...model }
    })
    runs.set(run, span)
    const context = yield* Effect.context<never>()
    yield* Scope.addFinalizerExit(run.scope, (exit) =>
      end(exit, (elapsed, error) => {
        setAll(span, GenAi.usageAttributes(run.usage))
        return measure(GenAi.agentDuration, elapsed, { ...model, "gen_ai.agent.name": run.agent, "error.type": error })
      }).pipe(Effect.provideContext(context))
    )
  })

  const openChat = (request: ModelRequest, run: Run, model: Run["model"]) =>
    open(`chat ${model?.modelId}`, {
      ...parentOf(run),
      kind: "client",
      attributes: {
        ...common("chat", run, model),
        "gen_ai.request.model": model?.modelId,
        "gen_ai.request.stream": true,
        "gen_ai.output.type": request.outputSchema === undefined ? "text" : "json",
        ...GenAi.parameterAttributes(request),
        ...(capture
          ? {
              "gen_ai.system_instructions": GenAi.systemInstructions(request.systemPrompt),
              "gen_ai.input.messages": GenAi.inputMessages(request.messages)
            }
          : {})
      }
    })

  const answered = (span: Tracer.Span, message: AiMessage): void =>
    setAll(span, {
      "gen_ai.response.model": message.model,
      "gen_ai.response.finish_reasons": [GenAi.finishReason(message)],
      ...(capture ? { "gen_ai.output.messages": GenAi.outputMessages(message) } : {})
    })

  return Middleware.make({
    name,
    inherit: true,
    beforeAgent: (run) => Effect.uninterruptible(beforeAgent(run)),
    wrapModelCall: (request, next, run) => {
      const model = request.session?.model ?? run.model
      return Stream.unwrap(
        Effect.map(openChat(request, run, model), ({ elapsed, end, span }) => {
          let firstAt: number | undefined
          let total: Usage.Usage | undefined
          let response: string | undefined
          const watch = (part: TurnPart): void => {
            firstAt ??= elapsed()
            if (part._tag !== "TurnDone") return
            response = part.message.model
            const { usage } = part.message
            if (usage !== undefined) total = Usage.add(total ?? Usage.zero, usage)
            answered(span, part.message)
          }
          return next(request).pipe(
            Stream.provideService(Tracer.ParentSpan, span),
            Stream.mapArray((parts) => {
              parts.forEach(watch)
              return parts
            }),
            Stream.onExit((exit) =>
              end(exit, (seconds, error) => {
                setAll(span, { "gen_ai.response.time_to_first_chunk": firstAt, ...GenAi.usageAttributes(total) })
                const tokens =
                  total === undefined
                    ? []
                    : ([
                        ["input", total.inputTokens],
                        ["output", total.outputTokens]
                      ] as const)
                const labels = {
                  "gen_ai.operation.name": "chat",
                  "gen_ai.provider.name": model?.provider,
                  "gen_ai.request.model": model?.modelId,
                  "gen_ai.response.model": response
                }
                return Effect.all(
                  [
                    measure(GenAi.operationDuration, seconds, { ...labels, "error.type": error }),
                    ...tokens.map(([type, count]) =>
                      measure(GenAi.tokenUsage, count, { ...labels, "gen_ai.token.type": type })
                    )
                  ],
                  { discard: true }
                )
              })
            )
          )
        })
      )
    },
    wrapToolCall: (call, next, run) => {
      const labels = { "gen_ai.tool.name": call.name, "gen_ai.tool.type": "function", "gen_ai.agent.name": run.agent }
      const attributes = {
        ...common("execute_tool", run),
        ...labels,
        "gen_ai.tool.call.id": call.id,
        ...(capture ? { "gen_ai.tool.call.arguments": JSON.stringify(call.arguments) } : {})
      }
      return Effect.acquireUseRelease(
        open(`execute_tool ${call.name}`, { ...parentOf(run), kind: "internal", attributes }),
        ({ span }) =>
          Effect.withParentSpan(next(call), span, { captureStackTrace: false }).pipe(
            Effect.tap((output) =>
              Effect.sync(() => {
                if (output.isError) span.attribute("error.type", "Failed")
                if (capture) span.attribute("gen_ai.tool.call.result", ToolOutput.text(output))
              })
            )
          ),
        ({ end }, exit) =>
          end(exit, (elapsed, error) => measure(GenAi.toolDuration, elapsed, { ...labels, "error.type": error }))
      )
    }
  })
}
