import { Agent, type ChatModel, type Middleware, type ModelError } from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import type { Ledger } from "effect-deepagents/stores"
import { expectTypeOf } from "vitest"

expectTypeOf(Budget.make({ tokens: 1, onExhausted: "finalAnswer" })).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(Budget.make({ tokens: 1, onExhausted: "fail" })).toEqualTypeOf<
  Middleware.Middleware<Budget.BudgetExceeded>
>()

declare const either: "finalAnswer" | "fail"
expectTypeOf(Budget.make({ onExhausted: either })).toEqualTypeOf<Middleware.Middleware<Budget.BudgetExceeded>>()

const agent = Agent.make({
  name: "a",
  prompt: "",
  middleware: [Budget.make({ time: "1 minute", onExhausted: "fail" })]
})
expectTypeOf(agent).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError | Budget.BudgetExceeded, ChatModel.ChatModel>
>()

// @ts-expect-error: a limit needs its action
Budget.make({ tokens: 1 })

const caps = () => ({ account: "tenant:acme", window: "day", max: { cost: 1 } }) as const
expectTypeOf(Budget.accounts({ caps, onExhausted: "finalAnswer" })).toEqualTypeOf<
  Middleware.Middleware<Ledger.LedgerError, Ledger.Ledger>
>()
expectTypeOf(Budget.accounts({ caps, onExhausted: "fail" })).toEqualTypeOf<
  Middleware.Middleware<Ledger.LedgerError | Ledger.LedgerFull, Ledger.Ledger>
>()
