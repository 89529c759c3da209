import { Context, type Effect, type Layer, Schema, type Stream } from "effect"
import { Agent, type ChatModel, type ModelError, Tool, type ToolContext, type ToolError } from "effect-deepagents"
import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
import * as Toolkit from "effect-deepagents/models/bridges/EffectAiToolkit"
import * as LanguageModelFromChatModel from "effect-deepagents/models/bridges/LanguageModelFromChatModel"
import { type AiError, LanguageModel, Tool as AiTool, Toolkit as AiToolkit } from "effect/ai"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly find: (id: string) => Effect.Effect<string> }>()(
  "test/Orders"
) {}
class Rates extends Context.Service<Rates, { readonly euro: number }>()("test/Rates") {}
class Approvals extends Context.Service<Approvals, { readonly ask: Effect.Effect<boolean> }>()("test/Approvals") {}

// The layers need and give nothing but the two models.
expectTypeOf(EffectAiChatModel.layer()).toEqualTypeOf<
  Layer.Layer<ChatModel.ChatModel, never, LanguageModel.LanguageModel>
>()
expectTypeOf(LanguageModelFromChatModel.layer).toEqualTypeOf<
  Layer.Layer<LanguageModel.LanguageModel, never, ChatModel.ChatModel>
>()

const Find = AiTool.make("find", { parameters: Schema.Struct({ id: Schema.String }), success: Schema.String })
const Convert = AiTool.make("convert", { success: Schema.Finite, failure: Schema.String, dependencies: [Rates] })
const Search = AiTool.providerDefined({ id: "x.search", customName: "Search", providerName: "search" })
const toolkit = AiToolkit.make(Find, Convert, Search())

// The needs of a toolkit's tools: handlers of local tools, and declared services.
type Needs = AiTool.Handler<"find"> | AiTool.Handler<"convert"> | Rates
const tools = Toolkit.fromToolkit(toolkit)
expectTypeOf(tools).toEqualTypeOf<ReadonlyArray<Tool.Tool<Needs>>>()

const agent = Agent.make({ name: "clerk", prompt: "", tools })
expectTypeOf(agent).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Needs>>()

// The approver's needs are the tools' needs.
expectTypeOf(
  Toolkit.fromToolkit(toolkit, { approve: () => Approvals.use((approvals) => approvals.ask) })
).toEqualTypeOf<ReadonlyArray<Tool.Tool<Needs | Approvals>>>()

// With the handlers at hand only the declared services are left.
declare const handlers: Effect.Success<typeof toolkit>
expectTypeOf(Toolkit.fromHandlers(handlers)).toEqualTypeOf<ReadonlyArray<Tool.Tool<Rates>>>()

const find = Tool.make("find", {
  description: "",
  parameters: { id: Schema.String },
  execute: ({ id }) => Orders.use((orders) => orders.find(id))
})
const rate = Tool.make("rate", {
  description: "",
  parameters: {},
  execute: () => Rates.useSync(({ euro }) => String(euro))
})

// In a toolkit our tools need their services at the place of use, as in an agent; their handlers need nothing.
const bridged = Toolkit.toToolkit([find, rate])
expectTypeOf(bridged.layer).toEqualTypeOf<Layer.Layer<AiTool.Handler<string>>>()
type Used = LanguageModel.LanguageModel | AiTool.Handler<string> | Orders | Rates
expectTypeOf<Effect.Services<ReturnType<typeof generated>>>().toEqualTypeOf<Used>()
expectTypeOf<Stream.Services<ReturnType<typeof streamed>>>().toEqualTypeOf<Used>()
const generated = () => LanguageModel.generateText({ prompt: "", toolkit: bridged.toolkit })
const streamed = () => LanguageModel.streamText({ prompt: "", toolkit: bridged.toolkit })

// A failure is a result: it is not among the errors.
expectTypeOf<Stream.Error<ReturnType<typeof streamed>>>().toEqualTypeOf<AiError.AiError>()
expectTypeOf<AiTool.Failure<Toolkit.FromTool<never>>>().toEqualTypeOf<ToolError.ToolError>()

// A tool that reaches for its run says so.
const emit = Tool.make("emit", { description: "", parameters: {}, execute: () => emitted })
declare const emitted: Effect.Effect<string, never, ToolContext.ToolContext>
expectTypeOf(Toolkit.toToolkit([emit]).toolkit).toEqualTypeOf<
  AiToolkit.Toolkit<Record<string, Toolkit.FromTool<ToolContext.ToolContext>>>
>()
