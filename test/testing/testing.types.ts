import { Context, Data, Effect, type FileSystem, Layer } from "effect"
import { Agent, type AgentError, type ChatModel, type Message, type ModelError } from "effect-deepagents"
import { AgentTest, Cassette, TestChatModel, TestIds } from "effect-deepagents/testing"
import { expectTypeOf } from "vitest"

const greeter = Agent.make({ name: "greeter", prompt: "Greet whoever writes." })

expectTypeOf(TestChatModel.script(["Hello"])).toEqualTypeOf<
  Layer.Layer<ChatModel.ChatModel | TestChatModel.TestModel>
>()

// One layer gives the agent its model and the test its record of it.
expectTypeOf(
  Effect.gen(function* () {
    yield* Agent.run(greeter, "Hi")
    return yield* TestChatModel.requests
  }).pipe(Effect.provide(TestChatModel.script(["Hello"])))
).toEqualTypeOf<Effect.Effect<ReadonlyArray<ChatModel.ModelRequest>, ModelError.ModelError | AgentError.AgentError>>()

// Recording needs a model, replaying does not.
expectTypeOf(Cassette.record("x").pipe(Layer.provide(TestChatModel.script([])))).toEqualTypeOf<
  Layer.Layer<ChatModel.ChatModel, ModelError.ModelError, FileSystem.FileSystem>
>()
expectTypeOf(Cassette.replay("x")).toEqualTypeOf<
  Layer.Layer<ChatModel.ChatModel, ModelError.ModelError, FileSystem.FileSystem>
>()

// A turn may be of any kind, or a function of the request.
TestChatModel.script([
  "text",
  TestChatModel.text(["in ", "pieces"], { chunkDelay: "10 millis", usage: { inputTokens: 1 } }),
  TestChatModel.calls([{ name: "f" }, { raw: "{" }]),
  TestChatModel.hang,
  (request) => request.systemPrompt,
  (request) => Effect.succeed(TestChatModel.text(request.purpose))
])
// @ts-expect-error a call needs a name, or the model's raw text
TestChatModel.calls([{ arguments: {} }])
// @ts-expect-error a turn can need nothing
TestChatModel.script([() => Effect.map(TestChatModel.unused, String)])

expectTypeOf(AgentTest.collect(greeter, "Hi")).toExtend<
  Effect.Effect<
    { readonly error: ModelError.ModelError | AgentError.AgentError | undefined },
    never,
    ChatModel.ChatModel
  >
>()
expectTypeOf(AgentTest.pairingProblems).parameter(0).toEqualTypeOf<ReadonlyArray<Message.Message>>()
expectTypeOf(TestIds.layer()).toEqualTypeOf<Layer.Layer<never>>()

// A scenario needs the agent's services but for the model, and fails as the agent does.
class Orders extends Context.Service<Orders, number>()("Orders") {}
class Closed extends Data.TaggedError("Closed")<{}> {}
const clerk = Agent.make({ name: "clerk", prompt: Effect.flatMap(Orders, () => Effect.fail(new Closed())) })
const run = AgentTest.scenario({ agent: clerk, model: ["Hello"], input: "Hi", expect: { text: /Hello/ } })
expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<Orders>()
expectTypeOf<Effect.Error<typeof run>>().toEqualTypeOf<Closed | ModelError.ModelError | AgentError.AgentError>()
// @ts-expect-error no run has this stop reason
AgentTest.scenario({ agent: clerk, model: [], input: "Hi", expect: { stopReason: "done" } })
// @ts-expect-error no event has this tag
AgentTest.scenario({ agent: clerk, model: [], input: "Hi", expect: { events: ["Told"] } })
// @ts-expect-error its texts have no such field
AgentTest.scenario({ agent: clerk, model: [], input: "Hi", expect: { events: [{ _tag: "TextDelta", words: "x" }] } })
