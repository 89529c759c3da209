import { Agent, type ChatModel, type ModelError } from "effect-deepagents"
import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
import { expectTypeOf } from "vitest"

const agent = Agent.make({ name: "a", prompt: "", middleware: [ToolSelection.make({ limit: 3 })] })
expectTypeOf(agent).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel>>()
