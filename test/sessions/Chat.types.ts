import type { Effect, Layer, Stream } from "effect"
import type {
  Agent,
  AgentError,
  AgentEvent,
  AgentResult,
  ChatModel,
  Journal,
  ModelError,
  SessionError
} from "effect-deepagents"
import { Chat, type MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { expectTypeOf } from "vitest"

interface Orders {
  readonly orders: true
}
declare const agent: Agent.Agent<number, ModelError.ModelError, ChatModel.ChatModel | Orders>

const made = Chat.make(agent, "t", { busy: "refuse" })
expectTypeOf<Effect.Error<typeof made>>().toEqualTypeOf<SessionError.SessionError>()
expectTypeOf<Effect.Services<typeof made>>().toEqualTypeOf<SessionStore.SessionStore>()

declare const chat: Effect.Success<typeof made>
const sent = chat.send("x")
expectTypeOf<Effect.Success<typeof sent>>().toEqualTypeOf<AgentResult.AgentResult<number>>()
expectTypeOf<Effect.Error<typeof sent>>().toEqualTypeOf<ModelError.ModelError | AgentError.AgentError | Chat.ChatBusy>()
expectTypeOf<Effect.Services<typeof sent>>().toEqualTypeOf<ChatModel.ChatModel | Orders>()
const streamed = chat.stream("x")
expectTypeOf<Stream.Success<typeof streamed>>().toEqualTypeOf<AgentEvent.AgentEvent>()
expectTypeOf<Stream.Services<typeof streamed>>().toEqualTypeOf<ChatModel.ChatModel | Orders>()

expectTypeOf(SessionStore.journal).toEqualTypeOf<Layer.Layer<Journal.Journal, never, SessionStore.SessionStore>>()
expectTypeOf<typeof MemorySessions.layer>().toEqualTypeOf<Layer.Layer<SessionStore.SessionStore>>()

// @ts-expect-error -- there is no third way
Chat.make(agent, "t", { busy: "drop" })
