import { Context, Effect, type Layer, Schema } from "effect"
import {
  Agent,
  type Approval,
  type Backend,
  type ChatModel,
  Middleware,
  type ModelError,
  type Sandbox,
  Tool
} from "effect-deepagents"
import { DeepAgent } from "effect-deepagents/deep"
import type { BackgroundTasks } from "effect-deepagents/middleware"
import { HarnessProfile } from "effect-deepagents/profiles"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly count: Effect.Effect<number> }>()("Orders") {}

const count = Tool.make("count", {
  description: "",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String))
})

type Deep<Output, R> = Agent.Agent<Output, ModelError.ModelError, ChatModel.ChatModel | Backend.Backend | R>

expectTypeOf(DeepAgent.make({ name: "a", prompt: "" })).toEqualTypeOf<Deep<string, never>>()

// The agent needs the services of its tools; `execute` needs a sandbox.
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", tools: [count], execute: true })).toEqualTypeOf<
  Deep<string, Orders | Sandbox.Sandbox>
>()

// An answer in a schema; an agent that may be suspended may have none.
expectTypeOf(
  DeepAgent.make({
    name: "a",
    prompt: "",
    output: Schema.Struct({ city: Schema.String }),
    approvals: { destructive: true }
  })
).toEqualTypeOf<Deep<{ readonly city: string } | undefined, never>>()

// Asking while the run waits needs somebody to ask.
expectTypeOf(Agent.attended(DeepAgent.make({ name: "a", prompt: "", approvals: { destructive: true } }))).toEqualTypeOf<
  Deep<string, Approval.Approvals>
>()

// So does a tool that needs approval, unless the agent can be suspended.
const pay = Tool.make("pay", {
  description: "",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String)),
  needsApproval: true
})
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", tools: [pay] })).toEqualTypeOf<
  Deep<string, Orders | Approval.Approvals>
>()
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", tools: [pay], approvals: {} })).toEqualTypeOf<
  Deep<string | undefined, Orders>
>()

// The agent needs the services of its sub-agents.
const clerk = DeepAgent.subagent({ name: "clerk", description: "counts", prompt: "", tools: [count] })
expectTypeOf(clerk).toEqualTypeOf<Deep<string, Orders>>()
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", subagents: [clerk] })).toEqualTypeOf<Deep<string, Orders>>()

// Those in the background need a supervisor, too.
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", backgroundSubagents: [clerk] })).toEqualTypeOf<
  Deep<string, Orders | BackgroundTasks.BackgroundTasks>
>()

// The same holds for its prompt, its middleware, its stop conditions and the model of its summaries; their failures fail
// its runs.
class Clock extends Context.Service<Clock, { readonly now: Effect.Effect<string, "no clock"> }>()("Clock") {}
class Key extends Context.Service<Key, string>()("Key") {}
class Bell extends Context.Service<Bell, Effect.Effect<boolean, "no bell">>()("Bell") {}
declare const small: Layer.Layer<ChatModel.ChatModel, "no model", Key>
expectTypeOf(
  DeepAgent.make({
    name: "a",
    prompt: Clock.use(({ now }) => now),
    stopWhen: [() => Bell.use((rings) => rings)],
    middleware: [Middleware.make({ name: "m", beforeAgent: () => Orders.use(({ count }) => Effect.asVoid(count)) })],
    summarization: { model: small }
  })
).toEqualTypeOf<
  Agent.Agent<
    string,
    ModelError.ModelError | "no clock" | "no bell",
    ChatModel.ChatModel | Backend.Backend | Clock | Bell | Orders | Key
  >
>()

// With `execute: false`, or none, there is no sandbox; with a limit of time, or who knows which, there is.
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", execute: false })).toEqualTypeOf<Deep<string, never>>()
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", execute: { timeout: "1 minute" } })).toEqualTypeOf<
  Deep<string, Sandbox.Sandbox>
>()
declare const perhaps: boolean
expectTypeOf(DeepAgent.make({ name: "a", prompt: "", execute: perhaps })).toEqualTypeOf<Deep<string, Sandbox.Sandbox>>()

// Lists that were put together, and options that may be there.
declare const tools: ReadonlyArray<Tool.Tool>
declare const stack: ReadonlyArray<Middleware.Middleware>
declare const workers: ReadonlyArray<Agent.Agent<string, never, never>>
declare const profile: HarnessProfile.HarnessProfile
expectTypeOf(
  DeepAgent.make({
    name: "a",
    prompt: "",
    tools: [...tools, count],
    middleware: perhaps ? [...stack] : [],
    subagents: [...workers, clerk],
    profiles: [...HarnessProfile.builtIn, profile],
    largeResults: perhaps ? false : { toolResults: 1_000 },
    ...(perhaps ? { approvals: { destructive: true } } : {}),
    ...(perhaps ? { execute: true } : {})
  })
).toEqualTypeOf<Deep<string | undefined, Orders | Sandbox.Sandbox>>()

// A misspelt option is refused.
// @ts-expect-error There is no option "tool".
DeepAgent.make({ name: "a", prompt: "", tool: [] })
// @ts-expect-error There is no option "approvals".
DeepAgent.subagent({ name: "a", description: "", prompt: "", approvals: {} })
// @ts-expect-error A sub-agent is chosen by its description.
DeepAgent.subagent({ name: "a", prompt: "" })

// So is one inside of an option, and the message names it.
// @ts-expect-error There is no option "approvals.tool".
DeepAgent.make({ name: "a", prompt: "", approvals: { tool: { write_file: true } } })
// @ts-expect-error There is no option "approvals.destructve".
DeepAgent.make({ name: "a", prompt: "", approvals: { destructve: true } })
DeepAgent.make({
  name: "a",
  prompt: "",
  // @ts-expect-error There is no option "approvals.tools.x.alow".
  approvals: { tools: { x: { when: () => true, alow: ["approve"] } } }
})
// @ts-expect-error There is no option "execute.maxTimout".
DeepAgent.make({ name: "a", prompt: "", execute: { timeout: "3 seconds", maxTimout: "1 minute" } })
// @ts-expect-error There is no option "largeResults.foldr".
DeepAgent.make({ name: "a", prompt: "", largeResults: { toolResults: 4, foldr: "/x" } })
// @ts-expect-error There is no option "summarization.tial".
DeepAgent.make({ name: "a", prompt: "", summarization: { tail: { tokens: 3 }, tial: 1 } })
// @ts-expect-error There is no option "generalPurpose.descripton".
DeepAgent.make({ name: "a", prompt: "", generalPurpose: { prompt: "x", descripton: "y" } })

// Valid options compile.
DeepAgent.make({
  name: "a",
  prompt: "",
  approvals: {
    tools: { a: true, b: (args) => args["x"] === 1, c: { when: () => true, allow: ["approve"] } }
  },
  execute: { timeout: "3 seconds" },
  largeResults: { toolResults: 4 },
  generalPurpose: { prompt: "x" }
})

// @ts-expect-error a tool is no middleware
DeepAgent.make({ name: "a", prompt: "", middleware: [count] })

// The compiler names a misspelt option with a scalar value, and no other.
DeepAgent.make({
  name: "a",
  prompt: "",
  execute: true,
  // @ts-expect-error There is no option "exceute".
  exceute: true
})
DeepAgent.make({
  name: "a",
  prompt: "",
  todos: true,
  approvals: {
    destructive: true,
    // @ts-expect-error There is no option "approvals.inherti".
    inherti: false
  }
})
