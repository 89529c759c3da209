import { Context, type Effect, Layer, Schedule, Schema } from "effect"
import { Agent, type AgentError, type ChatModel, type Middleware, type ModelError } from "effect-deepagents"
import { ModelFallback, ModelRetry, ModelTimeout, ToolRetry, ToolTimeout } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

class NoKey extends Schema.TaggedError<NoKey>()("NoKey", {}) {}
class NoRegion extends Schema.TaggedError<NoRegion>()("NoRegion", { region: Schema.String }) {}
class Keys extends Context.Service<Keys, string>()("test/Keys") {}
class Region extends Context.Service<Region, string>()("test/Region") {}
class Other extends Context.Service<Other, string>()("test/Other") {}

declare const second: Layer.Layer<ChatModel.ChatModel, NoKey, Keys>
declare const third: Layer.Layer<ChatModel.ChatModel | Other, NoRegion, Region>
declare const plain: Layer.Layer<ChatModel.ChatModel>
declare const strict: Schedule.Schedule<number, unknown, NoKey, Keys>
declare const local: Schedule.Schedule<string, unknown, NoRegion, Region>

// Without own schedules and layers there are no errors and no services.
expectTypeOf(ModelRetry.make()).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ModelRetry.make({ within: "1 minute" })).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ModelRetry.make({ schedule: Schedule.recurs(3) })).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ModelTimeout.make({ idle: "1 second", total: "Infinity" })).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ToolRetry.make()).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ToolRetry.make({ tools: { a: false, b: Schedule.recurs(3) } })).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ToolTimeout.make({ default: 1000, tools: { a: "1 hour" } })).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ModelFallback.make([])).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(ModelFallback.make([plain])).toEqualTypeOf<Middleware.Middleware>()

// The middleware has the errors and services of its layers and schedules.
expectTypeOf(ModelFallback.make([second, plain, third])).toEqualTypeOf<
  Middleware.Middleware<NoKey | NoRegion, Keys | Region>
>()
expectTypeOf(ModelRetry.make({ schedule: strict })).toEqualTypeOf<Middleware.Middleware<NoKey, Keys>>()
expectTypeOf(ToolRetry.make({ schedule: strict, tools: { a: local, b: false } })).toEqualTypeOf<
  Middleware.Middleware<NoKey | NoRegion, Keys | Region>
>()

// `when` and schedules are given the model's error.
ModelFallback.make([plain], { when: (error) => (expectTypeOf(error).toEqualTypeOf<ModelError.ModelError>(), true) })
declare const wrong: Schedule.Schedule<number, string>
// @ts-expect-error a schedule of strings is not one of model errors
ModelRetry.make({ schedule: wrong })
// @ts-expect-error a schedule of strings is not one of tool errors
ToolRetry.make({ tools: { a: wrong } })
// @ts-expect-error a layer that brings no model is no fallback
ModelFallback.make([Layer.succeed(Other, "no model")])

// An agent fails with and needs all of it, and nothing else: `ToolError` is the model's to know.
const agent = Agent.make({
  name: "agent",
  prompt: "You are typed.",
  middleware: [
    ModelRetry.make(),
    ModelFallback.make([second, third]),
    ModelTimeout.make(),
    ToolRetry.make({ schedule: strict }),
    ToolTimeout.make({ default: "1 minute" })
  ]
})
const run = () => Agent.run(agent, "hello")
expectTypeOf<Effect.Error<ReturnType<typeof run>>>().toEqualTypeOf<
  ModelError.ModelError | AgentError.AgentError | NoKey | NoRegion
>()
expectTypeOf<Effect.Services<ReturnType<typeof run>>>().toEqualTypeOf<ChatModel.ChatModel | Keys | Region>()
