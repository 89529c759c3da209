import { Agent, type Approval, type ChatModel, type ModelError } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

// Asking while the run waits needs somebody to ask.
expectTypeOf(
  Agent.attended(Agent.make({ name: "a", prompt: "", middleware: [HumanInTheLoop.make({ destructive: true })] }))
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Approval.Approvals>>()

// Suspending needs nobody, but there may be no answer.
expectTypeOf(
  Agent.make({ name: "a", prompt: "", middleware: [HumanInTheLoop.make({ destructive: true })] })
).toEqualTypeOf<Agent.Agent<string | undefined, ModelError.ModelError, ChatModel.ChatModel>>()
