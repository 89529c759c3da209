import { Context, Effect, Layer, Schema } from "effect"
import { Agent, AgentPromise, type AgentResult, type ChatModel, Tool } from "effect-deepagents"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { expectTypeOf } from "vitest"

class Stock extends Context.Service<Stock, { readonly of: (id: string) => Effect.Effect<number> }>()("test/Stock") {}
class Gone extends Schema.TaggedError<Gone>()("Gone", {}) {}
class Slow extends Schema.TaggedError<Slow>()("Slow", {}) {}

const parameters = { id: Schema.String }
const options = { description: "", parameters }

// The services of an effect are inferred; a promise and a value need none.
expectTypeOf(Tool.make("a", { ...options, execute: ({ id }) => Stock.use((stock) => stock.of(id)) })).toMatchTypeOf<
  Tool.Tool<Stock>
>()
expectTypeOf(Tool.make("a", { ...options, execute: async ({ id }) => ({ id }) })).toMatchTypeOf<Tool.Tool>()
expectTypeOf(Tool.make("a", { ...options, execute: ({ id }) => [id] })).toMatchTypeOf<Tool.Tool>()
// A union of effects, and a generator with two failures.
expectTypeOf(
  Tool.make("a", { ...options, execute: ({ id }) => (id === "" ? new Gone() : Effect.succeed(id)) })
).toMatchTypeOf<Tool.Tool>()
expectTypeOf(
  Tool.make("a", {
    ...options,
    execute: Effect.fnUntraced(function* ({ id }) {
      if (id === "") return yield* new Gone()
      if (id === "x") return yield* new Slow()
      return yield* Stock.use((stock) => stock.of(id))
    })
  })
).toMatchTypeOf<Tool.Tool<Stock>>()

// @ts-expect-error A tool has a result.
Tool.make("a", { ...options, execute: async () => {} })
// @ts-expect-error So has a tool with an effect.
Tool.make("a", { ...options, execute: () => Effect.void })
// @ts-expect-error An effect inside of a promise would not run.
Tool.make("a", { ...options, execute: async () => Effect.succeed("x") })

const agent = Agent.make({ name: "a", prompt: "", output: Schema.Struct({ n: Schema.Finite }) })
const model: Layer.Layer<ChatModel.ChatModel> = TestChatModel.script([])
const door = AgentPromise.make(agent, model)
expectTypeOf(door.run("x")).toEqualTypeOf<Promise<AgentResult.AgentResult<{ readonly n: number }>>>()
// @ts-expect-error There is no journal, so there are no threads.
void door.run("x", { threadId: "t" })
// @ts-expect-error Nor can one be resumed by its thread.
void door.resume({ threadId: "t" })
declare const before: AgentResult.AgentResult<unknown>
void door.resume({ checkpoint: before })

const kept = AgentPromise.make(agent, Layer.merge(model, Layer.provide(SessionStore.journal, MemorySessions.layer)))
void kept.run("x", { threadId: "t", signal: AbortSignal.timeout(1) })
void kept.resume({ threadId: "t" })
// @ts-expect-error There is no such option.
void kept.run("x", { threadID: "t" })

const needy = Agent.make({
  name: "a",
  prompt: "",
  tools: [Tool.make("a", { ...options, execute: ({ id }) => Stock.use((stock) => stock.of(id)) })]
})
// @ts-expect-error The layer lacks Stock.
AgentPromise.make(needy, model)
