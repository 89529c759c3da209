import type { Context, Effect } from "effect"
import type { Agent, AgentError, ChatModel, Message, ModelError, SessionError } from "effect-deepagents"
import { Branch, type SessionStore } from "effect-deepagents/sessions"
import { expectTypeOf } from "vitest"

const left = Branch.leave("t", { to: null, summarizer: Branch.summarizer })
expectTypeOf<Effect.Success<typeof left>>().toEqualTypeOf<{
  readonly leaf: SessionStore.Leaf
  readonly summary: Message.HumanMessage | undefined
}>()
expectTypeOf<Effect.Error<typeof left>>().toEqualTypeOf<
  SessionError.SessionError | AgentError.AgentError | ModelError.ModelError | Branch.NoSummary
>()
expectTypeOf<Effect.Services<typeof left>>().toEqualTypeOf<SessionStore.SessionStore | ChatModel.ChatModel>()

interface Budget {
  readonly _tag: "Budget"
}
declare const Orders: Context.Service<Budget, "orders">
declare const own: Agent.Agent<number, "mine", typeof Orders.Identifier>
const leftByOwn = Branch.leave("t", { to: "1", summarizer: own })
expectTypeOf<Effect.Error<typeof leftByOwn>>().toEqualTypeOf<
  SessionError.SessionError | AgentError.AgentError | Branch.NoSummary | "mine"
>()
expectTypeOf<Effect.Services<typeof leftByOwn>>().toEqualTypeOf<SessionStore.SessionStore | Budget>()

// @ts-expect-error -- a summary needs a model
Branch.leave("t", { to: null })
