/**
 * Mistakes that are easily made. None may compile in silence: `says` is in what the compiler says of the lines below it.
 * Where that does not tell the remedy, `page` is where docs/troubleshooting.md begins to.
 */
import { Context, Effect } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { DeepAgent } from "effect-deepagents/deep"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import { z } from "zod/v3"

class Orders extends Context.Service<Orders, { readonly find: Effect.Effect<string> }>()("Orders") {}
const base = { name: "a", prompt: "p" } as const
const agent = Agent.make(base)
const model = TestChatModel.script(["x"])
const tool = Tool.make("find", {
  description: "d",
  parameters: {},
  execute: () => Orders.use((orders) => orders.find)
})

// says: Did you mean to write 'tools'?
export const approvalsTool = DeepAgent.make({ ...base, approvals: { tool: { write_file: true } } })

// says: Did you mean to write 'destructive'?
export const destructive = DeepAgent.make({ ...base, approvals: { destructve: true } })

// says: There is no option \"approvals.tools.write_file.alow\".
export const allow = DeepAgent.make({
  ...base,
  approvals: { tools: { write_file: { when: () => true, alow: ["approve"] } } }
})

// says: There is no option \"execute.maxTimout\".
export const timeout = DeepAgent.make({ ...base, execute: { timeout: "3 seconds", maxTimout: "1 minute" } })

// says: There is no option \"largeResults.foldr\".
export const largeResults = DeepAgent.make({ ...base, largeResults: { toolResults: 4, foldr: "/x" } })

// says: There is no option \"generalPurpose.descripton\".
export const generalPurpose = DeepAgent.make({ ...base, generalPurpose: { prompt: "p", descripton: "x" } })

// says: There is no option \"exceute\".
export const execute = DeepAgent.make({ ...base, execute: true, exceute: true })

// says: There is no option \"histroy\".
export const history = Agent.run(agent, "x", { state: {}, histroy: [] })

// says: There is no option \"sate\".
export const state = Agent.stream(agent, "x", { history: [], sate: {} })

// says: Did you mean to write 'prompt'?
export const prompt = Agent.make({ name: "a", promt: "p" })

// says: Did you mean to write 'threadId'?
export const thread = Agent.run(agent, "x", { thread: "a" })

// says: Did you mean to write 'baseURL'?
export const url = ChatModels.resolve("vllm:m", { baseUrl: "http://127.0.0.1:8000/v1" })

// says: Did you mean to write 'tools'?
export const rules = HumanInTheLoop.make({ tool: {} })

// says: The schema gives no JSON Schema: use zod 4.2 or later, not zod 3 — page: The schema gives no JSON Schema
export const zod3 = Tool.make("t", { description: "d", parameters: z.object({ x: z.string() }), execute: () => "x" })

// says: Type 'void' is not assignable to type 'Data' — page: Type 'void' is not assignable to type 'Data'
export const promise = Tool.make("t", { description: "d", parameters: {}, execute: async () => {} })

// says: Type 'Effect<string, never, never>' is not assignable to type 'Data' — page: Type 'Effect<…>' is not assignable to type 'Data'
export const object = Tool.make("t", { description: "d", parameters: {}, execute: async () => Effect.succeed("x") })

// says: Type 'string' is not assignable to type 'Redacted<string>' — page: Type 'string' is not assignable to type 'Redacted<string>'
export const key = OpenAiChatModel.layer({ model: "m", apiKey: "sk-…" })

// says: required in type 'Middleware<unknown, unknown>' — page: is missing in type 'Tool<…>' but required in type 'Middleware<…>'
export const toolAsMiddleware = Agent.make({ ...base, middleware: [tool] })

// says: is missing the following properties from type 'Tool<unknown>' — page: Type 'Agent<…>' is missing the following properties from type 'Tool<…>'
export const agentAsTool = Agent.make({ ...base, tools: [agent] })

// says: Type 'ChatModel' is not assignable to type 'never' — page: Type 'ChatModel' is not assignable to type 'never'
export const noModel = Effect.runPromise(Agent.run(agent, "x"))

// says: Type 'Orders' is not assignable to type 'never' — page: or a service of yours
export const noService = Effect.runPromise(
  Agent.run(Agent.make({ ...base, tools: [tool] }), "x").pipe(Effect.provide(model))
)

// says: Type 'Approvals | Backend' is not assignable to type 'never' — page: Type 'Approvals \| Backend' is not assignable to type 'never'
export const noApprovals = Effect.runPromise(
  Agent.run(Agent.attended(DeepAgent.make({ ...base, approvals: { destructive: true } })), "x").pipe(
    Effect.provide(model)
  )
)

// says: Type 'Journal' is not assignable to type 'never' — page: Type 'Journal' is not assignable to type 'never'
export const noJournal = Effect.runPromise(Agent.run(agent, "x", { threadId: "a" }).pipe(Effect.provide(model)))
