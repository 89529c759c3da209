import { Data, type Effect, type Layer } from "effect"
import { Agent, type Backend, type ChatModel, type Middleware, type ModelError, type Run } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

class NoTodos extends Data.TaggedError("NoTodos") {}
interface Todos {
  readonly todos: "todos"
}
interface Key {
  readonly key: "key"
}

declare const keep: (run: Run.Run) => Effect.Effect<string, NoTodos, Todos>
declare const model: Layer.Layer<ChatModel.ChatModel, "no key", Key>
declare const maybe: boolean

expectTypeOf(Summarization.make()).toEqualTypeOf<Middleware.Middleware<never, ChatModel.ChatModel>>()
expectTypeOf(
  Summarization.make({ trigger: [{ fraction: 0.5 }, { messages: 100, tokens: 5 }], tail: { messages: 4 }, tool: true })
).toEqualTypeOf<Middleware.Middleware<never, ChatModel.ChatModel>>()
expectTypeOf(Summarization.make({ keep })).toEqualTypeOf<Middleware.Middleware<NoTodos, Todos | ChatModel.ChatModel>>()
const inline = Summarization.make({ keep: (run) => keep(run) })
expectTypeOf(inline).toEqualTypeOf<Middleware.Middleware<NoTodos, Todos | ChatModel.ChatModel>>()

// A model for summaries that can't be opened is a warning, not a failure.
expectTypeOf(Summarization.make({ model })).toEqualTypeOf<Middleware.Middleware<never, Key | ChatModel.ChatModel>>()

// Files are needed by who asked for them, or may have.
expectTypeOf(Summarization.make({ offload: true })).toEqualTypeOf<
  Middleware.Middleware<never, Backend.Backend | ChatModel.ChatModel>
>()
expectTypeOf(Summarization.make({ offload: maybe })).toEqualTypeOf<
  Middleware.Middleware<never, Backend.Backend | ChatModel.ChatModel>
>()
expectTypeOf(Summarization.make({ offload: false })).toEqualTypeOf<Middleware.Middleware<never, ChatModel.ChatModel>>()

const plain = Agent.make({ name: "a", prompt: "", middleware: [Summarization.make()] })
expectTypeOf(plain).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel>>()

const full = Agent.make({ name: "a", prompt: "", middleware: [Summarization.make({ keep, model, offload: true })] })
expectTypeOf(full).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError | NoTodos, ChatModel.ChatModel | Todos | Key | Backend.Backend>
>()

// @ts-expect-error: there is no such option
Summarization.make({ threshold: 1, tool: true })
