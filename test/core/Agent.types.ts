import { Context, Effect, type Layer, pipe, type Result, Schema, type Scope, type Stream } from "effect"
import {
  Agent,
  type AgentError,
  AgentEvent,
  type AgentResult,
  AgentState,
  type Approval,
  ChatModel,
  type Checkpoint,
  type Json,
  Message,
  Middleware,
  Ruling,
  type ModelError,
  StopWhen,
  Tool,
  ToolContext,
  type ToolError,
  type ToolOutput
} from "effect-deepagents"
import { expectTypeOf } from "vitest"
import type { InvalidEncoding } from "../../src/core/schema/encoding.ts"

class OrderNotFound extends Schema.TaggedError<OrderNotFound>()("OrderNotFound", { orderId: Schema.String }) {}
class Orders extends Context.Service<Orders, { readonly find: (id: string) => Effect.Effect<string, OrderNotFound> }>()(
  "test/Orders"
) {}
class Audit extends Context.Service<Audit, { readonly note: Effect.Effect<void> }>()("test/Audit") {}
class Denied extends Schema.TaggedError<Denied>()("Denied", {}) {}

const lookup = Tool.make("lookup_order", {
  description: "Find an order by its id",
  parameters: { orderId: Schema.String },
  execute: ({ orderId }) => Orders.use((orders) => orders.find(orderId))
})
expectTypeOf(lookup).toEqualTypeOf<Tool.Tool<Orders> & Tool.Takes<{ readonly orderId: string }>>()

const support = Agent.make({ name: "support", prompt: "You help customers.", tools: [lookup] })
expectTypeOf(support).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders>>()

expectTypeOf(Agent.run(support, "Where is order 42?")).toEqualTypeOf<
  Effect.Effect<
    AgentResult.AgentResult<string>,
    ModelError.ModelError | AgentError.AgentError,
    ChatModel.ChatModel | Orders
  >
>()

expectTypeOf<Stream.Error<ReturnType<typeof stream>>>().toEqualTypeOf<ModelError.ModelError | AgentError.AgentError>()
const stream = () => Agent.stream(support, "x")

const audited = Middleware.make({
  name: "audited",
  beforeModel: () => Audit.use((audit) => audit.note),
  wrapToolCall: (call, next) => (call.name === "rm" ? Effect.fail(new Denied()) : next(call))
})
expectTypeOf(audited).toEqualTypeOf<Middleware.Middleware<Denied, Audit>>()

const bounded = Agent.make({
  name: "bounded",
  prompt: Effect.succeed("hi"),
  tools: [lookup],
  middleware: [audited],
  stopWhen: [StopWhen.rounds(3)],
  output: Schema.Struct({ city: Schema.String })
})
expectTypeOf(bounded).toEqualTypeOf<
  Agent.Agent<{ readonly city: string }, ModelError.ModelError | Denied, ChatModel.ChatModel | Orders | Audit>
>()

declare const ordersLayer: Layer.Layer<Orders, "orders down", Audit>
expectTypeOf(Agent.provide(support, ordersLayer)).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError | "orders down", ChatModel.ChatModel | Audit>
>()

const approval = Middleware.make({
  asks: true,
  name: "approval",
  rulings: (_run, calls) => Effect.succeed(calls.map(() => undefined))
})
expectTypeOf(Agent.make({ name: "a", prompt: "", middleware: [approval] })).toEqualTypeOf<
  Agent.Agent<string | undefined, ModelError.ModelError, ChatModel.ChatModel>
>()

// Rulings that may ask a person may leave the run without an answer, unless somebody attends it.
const mayAsk = (_run: unknown, calls: ReadonlyArray<unknown>) =>
  Audit.use((audit) =>
    Effect.as(
      audit.note,
      calls.map(() => Ruling.ask("test", { description: "may I?" }))
    )
  )
const asking = Middleware.make({ asks: true, name: "asking", rulings: mayAsk })
expectTypeOf(asking).toEqualTypeOf<Middleware.AskingMiddleware<never, Audit>>()
const suspended = Agent.make({ name: "a", prompt: "", middleware: [asking] })
expectTypeOf(suspended).toEqualTypeOf<
  Agent.Agent<string | undefined, ModelError.ModelError, ChatModel.ChatModel | Audit>
>()
expectTypeOf(Agent.attended(suspended)).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Audit | Approval.Approvals>
>()
expectTypeOf(suspended.pipe(Agent.attended)).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Audit | Approval.Approvals>
>()
// @ts-expect-error only a middleware that says `asks` may ask
Middleware.make({ name: "plain", rulings: mayAsk })
// @ts-expect-error nor one without needs
Middleware.make({ name: "plain", rulings: () => Effect.succeed([Ruling.ask("test", { description: "may I?" })]) })
// @ts-expect-error nor a plain middleware with its rulings
Middleware.make({ name: "plain", rulings: asking.rulings })

expectTypeOf(Agent.asTool(support)).toEqualTypeOf<Tool.Tool<ChatModel.ChatModel | Orders | ToolContext.ToolContext>>()

declare const needsOrders: Schema.Codec<string, string, Orders>
Tool.make("x", {
  description: "",
  // @ts-expect-error a tool's parameters may not need services to decode
  parameters: { a: needsOrders },
  execute: () => Effect.succeed("")
})

const slot = AgentState.slot("n", { schema: Schema.Finite, initial: 0 })
expectTypeOf(slot).toEqualTypeOf<AgentState.Slot<number>>()
expectTypeOf(StopWhen.stateIs(slot, (n) => n > 1)).toEqualTypeOf<StopWhen.StopWhen>()
expectTypeOf(
  Agent.make({
    name: "a",
    prompt: Audit.use((audit) => Effect.as(audit.note, "p")),
    stopWhen: [StopWhen.rounds(2), () => Effect.fail(new Denied())]
  })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError | Denied, ChatModel.ChatModel | Audit>>()

expectTypeOf(Agent.make({ name: "a", prompt: "", stopWhen: [StopWhen.stateIs(slot, (n) => n > 1)] })).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel>
>()

const dynamic = Tool.dynamic("d", {
  description: "",
  parameters: { type: "object" },
  execute: () => Audit.use((audit) => Effect.as(audit.note, "x"))
})
expectTypeOf(dynamic).toEqualTypeOf<Tool.Tool<Audit>>()
expectTypeOf(Tool.run(dynamic, {})).toEqualTypeOf<Effect.Effect<ToolOutput.ToolOutput, ToolError.ToolError, Audit>>()

expectTypeOf(Agent.stream(bounded, "x")).toEqualTypeOf<
  Stream.Stream<
    AgentEvent.AgentEvent,
    ModelError.ModelError | Denied | AgentError.AgentError,
    ChatModel.ChatModel | Orders | Audit
  >
>()
expectTypeOf(Agent.start(bounded, "x")).toEqualTypeOf<
  Effect.Effect<
    Agent.Handle<{ readonly city: string }, ModelError.ModelError | Denied | AgentError.AgentError>,
    never,
    ChatModel.ChatModel | Orders | Audit | Scope.Scope
  >
>()
expectTypeOf(Agent.delegate(support, "x")).toEqualTypeOf<
  Effect.Effect<
    AgentResult.AgentResult<string>,
    ModelError.ModelError | AgentError.AgentError,
    ChatModel.ChatModel | Orders | ToolContext.ToolContext
  >
>()
expectTypeOf<Agent.Output<typeof bounded>>().toEqualTypeOf<{ readonly city: string }>()
expectTypeOf<Agent.Error<typeof bounded>>().toEqualTypeOf<ModelError.ModelError | Denied | AgentError.AgentError>()
expectTypeOf<Agent.Services<typeof bounded>>().toEqualTypeOf<ChatModel.ChatModel | Orders | Audit>()

// A tool that reaches its run needs nothing of the user for it.
const aware = Tool.make("aware", {
  description: "",
  parameters: {},
  execute: () => ToolContext.ToolContext.use((context) => Effect.succeed(context.callId))
})
expectTypeOf(Agent.make({ name: "a", prompt: "", tools: [aware, Agent.asTool(support)] })).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders>
>()

declare const session: Effect.Success<ReturnType<typeof ChatModel.open>>
expectTypeOf(session).toEqualTypeOf<ChatModel.ModelSession>()
expectTypeOf(
  ChatModel.fromAsyncIterable(
    () => numbers(),
    () => "broken" as const
  )
).toEqualTypeOf<Stream.Stream<number, "broken">>()
declare const numbers: () => AsyncIterable<number>

// Written in place, middleware and tools infer the same as on their own.
expectTypeOf(
  Agent.make({
    name: "inline",
    prompt: "",
    middleware: [
      Middleware.make({ name: "data", prompt: "x" }),
      Middleware.make({ name: "hook", beforeModel: () => Audit.use((audit) => audit.note) })
    ],
    tools: [
      Tool.make("pure", { description: "", parameters: {}, execute: () => Effect.succeed("x") }),
      Tool.make("thrower", {
        description: "",
        parameters: {},
        execute: () => Effect.fail(new Denied())
      }),
      Tool.make("async", { description: "", parameters: {}, execute: async () => ({ state: "x" }) }),
      Tool.make("plain", { description: "", parameters: { id: Schema.String }, execute: ({ id }) => id }),
      Tool.dynamic("known later", { description: "", parameters: { type: "object" }, execute: async () => "x" })
    ]
  })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Audit>>()

// A misspelt option of a run does not compile.
// @ts-expect-error There is no option "histroy".
Agent.run(support, "x", { state: {}, histroy: [] })
// @ts-expect-error There is no option "sate".
Agent.stream(support, "x", { history: [], sate: {} })
declare const checkpoint: Checkpoint.Checkpoint
Agent.resume(support, { checkpoint, decisions: [], unknownOutcome: "ask" })
// @ts-expect-error There is no option "decision".
Agent.resume(support, { checkpoint, decision: [] })
// @ts-expect-error There is no option "unknownOutcom".
Agent.resume(support, { threadId: "t", unknownOutcom: "ask" })
// @ts-expect-error There is no option "thread".
Agent.start(support, "x", { threadId: "t", thread: "t" })

// A tool that needs approval needs somebody who decides, unless the agent can be suspended.
const pay = Tool.make("pay", {
  description: "",
  parameters: { amount: Schema.Finite },
  execute: ({ amount }) => Orders.use((orders) => orders.find(String(amount))),
  needsApproval: true
})
expectTypeOf(pay).toEqualTypeOf<Tool.NeedingApproval<Orders> & Tool.Takes<{ readonly amount: number }>>()
expectTypeOf<Tool.Services<typeof pay>>().toEqualTypeOf<Orders | Approval.Approvals>()
const large = Tool.make("large", {
  description: "",
  parameters: { amount: Schema.Finite },
  execute: () => Effect.succeed("x"),
  needsApproval: ({ amount }) => Audit.use((audit) => Effect.as(audit.note, amount > 100))
})
expectTypeOf(large).toEqualTypeOf<Tool.NeedingApproval<Audit> & Tool.Takes<{ readonly amount: number }>>()
expectTypeOf(
  Tool.dynamic("d", {
    description: "",
    parameters: {},
    execute: () => Effect.succeed("x"),
    needsApproval: (args) => args["amount"] !== 1
  })
).toEqualTypeOf<Tool.NeedingApproval>()
expectTypeOf(Agent.make({ name: "a", prompt: "", tools: [lookup, pay, large] })).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders | Audit | Approval.Approvals>
>()
expectTypeOf(Agent.make({ name: "a", prompt: "", tools: [lookup, pay, large], middleware: [approval] })).toEqualTypeOf<
  Agent.Agent<string | undefined, ModelError.ModelError, ChatModel.ChatModel | Orders | Audit>
>()
expectTypeOf(
  Agent.make({
    name: "a",
    prompt: "",
    tools: [
      Tool.make("pay", {
        description: "",
        parameters: {},
        execute: () => Effect.succeed("x"),
        needsApproval: () => true
      })
    ]
  })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Approval.Approvals>>()
Tool.make("x", {
  description: "",
  parameters: { amount: Schema.Finite },
  execute: () => Effect.succeed("x"),
  // @ts-expect-error the arguments have no "amuont"
  needsApproval: ({ amuont }) => amuont > 1
})
Tool.make("x", {
  description: "",
  parameters: {},
  execute: () => Effect.succeed("x"),
  // @ts-expect-error a question may not fail
  needsApproval: () => Effect.fail(new Denied())
})
Tool.make("x", {
  description: "",
  parameters: {},
  execute: () => Effect.succeed("x"),
  // @ts-expect-error leave it out
  needsApproval: false
})

// Parameters are fields, a struct, or a class.
class Place extends Schema.Class<Place>("Place")({ city: Schema.String }) {}
Tool.make("x", {
  description: "",
  parameters: Schema.Struct({ n: Schema.FiniteFromString, s: Schema.optionalKey(Schema.String) }),
  execute: (args) => {
    expectTypeOf(args).toEqualTypeOf<{ readonly n: number; readonly s?: string }>()
    return Effect.succeed("x")
  }
})
Tool.make("x", {
  description: "",
  parameters: Place,
  execute: (args) => {
    expectTypeOf(args).toEqualTypeOf<Place>()
    return Effect.succeed("x")
  }
})
Tool.make("x", {
  description: "",
  // @ts-expect-error parameters have names
  parameters: Schema.String,
  execute: () => Effect.succeed("x")
})

// The least that an agent is.
expectTypeOf(Agent.make({ name: "a", prompt: "" })).toEqualTypeOf<Agent.Agent>()

// A tool is no middleware, nor is an object that nobody looked at.
// @ts-expect-error it belongs in `tools`
Agent.make({ name: "a", prompt: "", middleware: [lookup] })
// @ts-expect-error it is made by `Middleware.make`, which knows the names of hooks
Agent.make({ name: "a", prompt: "", middleware: [{ name: "x", beforModel: () => Effect.void }] })
// @ts-expect-error there is no hook of this name
Middleware.make({ name: "x", beforModel: () => Effect.void })
// @ts-expect-error there is no hook of this name
Middleware.make({ asks: true, name: "x", gateToolCall: () => Effect.succeed([]) })
// @ts-expect-error there is no hook of this name
Agent.make({ name: "a", prompt: "", middleware: [Middleware.make({ name: "x", beforModel: () => Effect.void })] })

// A function over a value can be called with it, or piped.
const set = pipe(slot, AgentState.assign(2))
expectTypeOf(set).toEqualTypeOf<AgentState.Update>()
expectTypeOf(AgentState.assign(slot, 2)).toEqualTypeOf<AgentState.Update>()
expectTypeOf(
  pipe(
    slot,
    AgentState.change((n) => n + 1)
  )
).toEqualTypeOf<AgentState.Update>()
expectTypeOf(AgentState.change(slot, (n) => n + 1)).toEqualTypeOf<AgentState.Update>()
// @ts-expect-error not a value of this slot
AgentState.assign(slot, "2")
// @ts-expect-error not a value of this slot
pipe(slot, AgentState.assign("2"))
declare const snapshot: AgentState.Snapshot
expectTypeOf(pipe(snapshot, AgentState.read(slot))).toEqualTypeOf<Result.Result<number, InvalidEncoding>>()

const fails = () => Effect.fail(new Denied())
const needs = () => Audit.use((audit) => Effect.as(audit.note, true))
expectTypeOf(StopWhen.and(fails, needs)).toEqualTypeOf<StopWhen.StopWhen<Denied, Audit>>()
expectTypeOf(pipe(fails, StopWhen.or(needs), StopWhen.not)).toEqualTypeOf<StopWhen.StopWhen<Denied, Audit>>()
expectTypeOf(pipe(StopWhen.rounds(2), StopWhen.and(StopWhen.toolCalled("x")))).toEqualTypeOf<StopWhen.StopWhen>()

type Streamed<A> = Stream.Stream<A, ModelError.ModelError | AgentError.AgentError, ChatModel.ChatModel | Orders>
expectTypeOf(AgentEvent.filter(stream(), "ToolCalled")).toEqualTypeOf<Streamed<AgentEvent.Of<"ToolCalled">>>()
expectTypeOf(stream().pipe(AgentEvent.filter(["ToolCalled", "ToolFailed"]))).toEqualTypeOf<
  Streamed<AgentEvent.Of<"ToolCalled"> | AgentEvent.Of<"ToolFailed">>
>()
expectTypeOf(stream().pipe(AgentEvent.textDeltas)).toEqualTypeOf<Streamed<string>>()
// @ts-expect-error no event has this tag
AgentEvent.filter(stream(), "ToolCaled")

// An event of a request is the request.
expectTypeOf<AgentEvent.Of<"ApprovalRequested">>().toExtend<Approval.Request>()
// Dynamic tools: errors and services of finding them, and their own services, all show.
declare const found: Effect.Effect<ReadonlyArray<typeof lookup>, Denied, Audit>
expectTypeOf(Middleware.make({ name: "x", tools: () => found })).toEqualTypeOf<
  Middleware.Middleware<Denied, Audit | Orders>
>()
expectTypeOf(Middleware.make({ name: "x", tools: () => Effect.succeed([lookup]) })).toEqualTypeOf<
  Middleware.Middleware<never, Orders>
>()
expectTypeOf(
  Middleware.make({ name: "x", tools: [lookup], beforeModel: () => Audit.use((audit) => audit.note) })
).toEqualTypeOf<Middleware.Middleware<never, Audit | Orders>>()

// Types in declarations and hovers have names.
expectTypeOf(AgentEvent.AgentEvent).toEqualTypeOf<Schema.Codec<AgentEvent.AgentEvent, Json.JsonObject>>()
expectTypeOf(Message.Message).toEqualTypeOf<Schema.Codec<Message.Message, Json.JsonObject>>()

// Reconciling a call may need services of its own.
expectTypeOf(
  Tool.make("x", {
    description: "",
    parameters: {},
    reconcile: () => Audit.use((audit) => Effect.as(audit.note, Tool.unknown)),
    execute: () => Orders.use(() => Effect.succeed("x"))
  })
).toEqualTypeOf<Tool.Tool<Orders | Audit> & Tool.Takes<{}>>()
