import { Context, Effect, Layer, Schema } from "effect"
import {
  Agent,
  type AgentError,
  type Approval,
  type ChatModel,
  type Message,
  Middleware,
  type ModelError,
  Question,
  type Run,
  Tool,
  ToolContext,
  type ToolError,
  type ToolOutput
} from "effect-deepagents"
import { Rubric } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"
import type { StandardSchema } from "../../src/core/schema/standard.ts"

class Orders extends Context.Service<Orders, { readonly find: (id: string) => Effect.Effect<string> }>()(
  "test/Orders"
) {}
class Audit extends Context.Service<Audit, { readonly note: Effect.Effect<void> }>()("test/Audit") {}
class NoLuck extends Schema.TaggedError<NoLuck>()("NoLuck", {}) {}

const lookup = Tool.make("lookup", {
  description: "",
  parameters: { id: Schema.String },
  execute: ({ id }) => Orders.use((orders) => orders.find(id))
})
const writer = Agent.make({ name: "writer", prompt: "", tools: [lookup] })
const judge = Agent.make({ name: "judge", prompt: "", output: Schema.Struct({ met: Schema.Boolean }) })

// Pure code needs nothing and fails with nothing of its own.
const pure = Agent.program({ name: "pure", run: (text) => Effect.succeed(text.toUpperCase()) })
expectTypeOf(pure).toEqualTypeOf<Agent.Program<string, string, never, never>>()
expectTypeOf(Agent.run(pure, "x")).toMatchTypeOf<Effect.Effect<unknown, AgentError.AgentError>>()

const whole = Agent.program({
  name: "whole",
  input: Schema.Struct({ at: Schema.Date }),
  output: Schema.Struct({ n: Schema.Finite }),
  tools: [lookup],
  run: Effect.fnUntraced(function* ({ at }) {
    expectTypeOf(at).toEqualTypeOf<Date>()
    const { ask, call } = yield* ToolContext.ToolContext
    expectTypeOf(call(lookup, { id: "1" })).toEqualTypeOf<
      Effect.Effect<ToolOutput.ToolOutput, ToolError.ToolError, Orders>
    >()
    const any: Tool.Tool<Orders> = lookup
    expectTypeOf(call(any, { whatever: 1 })).toEqualTypeOf<
      Effect.Effect<ToolOutput.ToolOutput, ToolError.ToolError, Orders>
    >()
    // @ts-expect-error its arguments are an id.
    yield* call(lookup, { name: "1" })
    yield* call(lookup, { id: "1" })
    expectTypeOf(yield* ask(Question.confirm("?"))).toEqualTypeOf<boolean>()
    expectTypeOf(yield* Agent.step("day", Effect.succeed(at), Schema.Date)).toEqualTypeOf<Date>()
    yield* Audit.use((audit) => audit.note)
    expectTypeOf(yield* Agent.answer(writer, "x")).toEqualTypeOf<string>()
    const { met } = yield* Agent.answer(judge, "x")
    return met ? { n: 1 } : yield* new NoLuck()
  })
})
expectTypeOf(whole).toEqualTypeOf<
  Agent.Program<
    { readonly at: Date },
    { readonly n: number },
    NoLuck | ToolError.ToolError | AgentError.AgentError | ModelError.ModelError,
    Orders | Audit | ChatModel.ChatModel
  >
>()
expectTypeOf(whole.input({ at: new Date() })).toEqualTypeOf<Message.HumanMessage>()
// @ts-expect-error the input must fit its schema
whole.input({ at: "today" })

Agent.program({
  name: "wrong",
  output: Schema.Finite,
  // @ts-expect-error the output must fit its schema
  run: () => Effect.succeed("x")
})
// @ts-expect-error without a schema it is a text
Agent.program({ name: "wrong", run: () => Effect.succeed(1) })

declare const standard: StandardSchema<{ readonly city: string }>
expectTypeOf(Agent.program({ name: "s", input: standard, output: standard, run: Effect.succeed })).toEqualTypeOf<
  Agent.Program<{ readonly city: string }, { readonly city: string }, never, never>
>()

// It may have no answer if it can be suspended, and then needs no decider.
const pay = Tool.make("pay", {
  description: "",
  parameters: {},
  needsApproval: true,
  execute: () => Effect.succeed("")
})
expectTypeOf(
  Agent.program({ name: "p", tools: [pay], middleware: [Middleware.suspendable], run: Effect.succeed })
).toEqualTypeOf<Agent.Program<string, string | undefined, never, never>>()
expectTypeOf(Agent.program({ name: "p", tools: [pay], run: Effect.succeed })).toEqualTypeOf<
  Agent.Program<string, string, never, Approval.Approvals>
>()

// Who asks a model on the side needs one: an agent has it, a program says so.
expectTypeOf<ReturnType<Run.Run["call"]>>().toEqualTypeOf<
  Effect.Effect<Message.AiMessage, ModelError.ModelError, ChatModel.ChatModel>
>()
expectTypeOf(
  Agent.program({ name: "p", middleware: [Rubric.make({ criteria: "" })], run: Effect.succeed })
).toEqualTypeOf<Agent.Program<string, string, ModelError.ModelError, ChatModel.ChatModel>>()

// A program is an agent.
expectTypeOf(whole).toExtend<Agent.Agent<{ readonly n: number }, unknown, Orders | Audit | ChatModel.ChatModel>>()
expectTypeOf(Agent.asTool(whole)).toEqualTypeOf<
  Tool.Tool<Orders | Audit | ChatModel.ChatModel | ToolContext.ToolContext>
>()
expectTypeOf(Agent.provide(whole, Layer.empty as Layer.Layer<Orders>)).toEqualTypeOf<
  Agent.Agent<
    { readonly n: number },
    NoLuck | ToolError.ToolError | AgentError.AgentError | ModelError.ModelError,
    Audit | ChatModel.ChatModel
  >
>()
const suspendable = Agent.make({ name: "s", prompt: "", middleware: [Middleware.suspendable] })
expectTypeOf(Agent.answer(suspendable, "x")).toEqualTypeOf<
  Effect.Effect<string, ModelError.ModelError | AgentError.AgentError, ChatModel.ChatModel | ToolContext.ToolContext>
>()
