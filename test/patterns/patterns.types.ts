import { Context, Effect, Result, Schema } from "effect"
import {
  Agent,
  type AgentError,
  type ChatModel,
  Middleware,
  type ModelError,
  Tool,
  ToolContext
} from "effect-deepagents"
import { Goal, MapReduce, Pipeline, Plan, Reflect, Supervisor, Team } from "effect-deepagents/patterns"
import { expectTypeOf } from "vitest"

class Orders extends Context.Service<Orders, { readonly find: (id: string) => Effect.Effect<string> }>()(
  "test/patterns/Orders"
) {}
class Files extends Context.Service<Files, { readonly read: Effect.Effect<string> }>()("test/patterns/Files") {}
class NoLuck extends Schema.TaggedError<NoLuck>()("NoLuck", {}) {}

type Fails = ModelError.ModelError | AgentError.AgentError

const lookup = Tool.make("lookup", {
  description: "",
  parameters: { id: Schema.String },
  execute: ({ id }) => Orders.use((orders) => orders.find(id))
})
const worker = Agent.make({ name: "worker", prompt: "", tools: [lookup] })
const plain = Agent.make({ name: "plain", prompt: "" })
const asking = Agent.make({ name: "asking", prompt: "", middleware: [Middleware.suspendable] })
const quiet = Agent.program({ name: "quiet", run: Effect.succeed })
const unlucky = Agent.program({ name: "unlucky", run: () => new NoLuck() })

// Errors and services come from the agents and the default judge.
expectTypeOf(Goal.make({ worker })).toEqualTypeOf<
  Agent.Program<Goal.Input, Goal.Result, Fails, ChatModel.ChatModel | Orders>
>()
// A worker that may wait makes a pattern that may wait.
expectTypeOf(Goal.make({ worker: asking })).toEqualTypeOf<
  Agent.Program<Goal.Input, Goal.Result | undefined, Fails, ChatModel.ChatModel>
>()
const judge = Agent.program({
  name: "judge",
  output: Goal.Judgement,
  run: () => Effect.succeed({ verdicts: [], feedback: "" })
})
// Agents of code alone need no model.
expectTypeOf(Goal.make({ worker: quiet, judge })).toEqualTypeOf<
  Agent.Program<Goal.Input, Goal.Result, AgentError.AgentError, never>
>()
expectTypeOf(
  Goal.make({
    worker: unlucky,
    judge,
    evidence: () => Effect.flatMap(ToolContext.ToolContext, () => Files.use(({ read }) => read))
  })
).toEqualTypeOf<Agent.Program<Goal.Input, Goal.Result, AgentError.AgentError | NoLuck, Files>>()
// @ts-expect-error an answer of another type is no text
Goal.make({ worker: judge })

expectTypeOf(Reflect.make({ worker: plain })).toEqualTypeOf<
  Agent.Program<string, Reflect.Result, Fails, ChatModel.ChatModel>
>()
expectTypeOf(Plan.make({ worker: asking, check: () => Effect.fail(new NoLuck()) })).toEqualTypeOf<
  Agent.Program<string, Plan.Result | undefined, Fails | NoLuck, ChatModel.ChatModel>
>()
expectTypeOf(Team.make({ members: [quiet, unlucky] })).toEqualTypeOf<
  Agent.Program<string, Team.Result, AgentError.AgentError | NoLuck, never>
>()
expectTypeOf(Supervisor.make({ workers: [worker, asking] })).toEqualTypeOf<
  Agent.Program<string, Supervisor.Result | undefined, Fails, ChatModel.ChatModel | Orders>
>()
expectTypeOf(
  Pipeline.make({
    name: "p",
    steps: { a: { agent: worker, ask: () => "" }, b: { agent: asking, after: ["a"], ask: ({ a = "" }) => a } }
  })
).toEqualTypeOf<Agent.Program<string, Pipeline.Result | undefined, Fails, ChatModel.ChatModel | Orders>>()

expectTypeOf(
  MapReduce.make({
    name: "m",
    input: Schema.Date,
    output: Schema.Finite,
    split: (date) => {
      expectTypeOf(date).toEqualTypeOf<Date>()
      return Effect.as(Orders, [""])
    },
    map: judge,
    reduce: (found) => {
      expectTypeOf(found).toEqualTypeOf<ReadonlyArray<MapReduce.PartAnswer<Goal.Judgement>>>()
      return Effect.as(
        Effect.forEach(found, ({ answer }) => (Result.isFailure(answer) ? new NoLuck() : Effect.void)),
        1
      )
    }
  })
).toEqualTypeOf<Agent.Program<Date, number, AgentError.AgentError | NoLuck, Orders>>()
