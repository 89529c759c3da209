import { Agent, type Approval, type ChatModel, type ModelError } from "effect-deepagents"
import { FanOut } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

// Without a decider who is asked while the run waits, there may be no answer.
expectTypeOf(
  Agent.attended(Agent.make({ name: "a", prompt: "", middleware: [FanOut.make({ above: 1 })] }))
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Approval.Approvals>>()

expectTypeOf(Agent.make({ name: "a", prompt: "", middleware: [FanOut.make({ above: 1 })] })).toEqualTypeOf<
  Agent.Agent<string | undefined, ModelError.ModelError, ChatModel.ChatModel>
>()
