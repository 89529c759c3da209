/**
 * A library of a user's: what it exports is typed by inference alone, and its declarations have to name all of it. No
 * type of the package is imported, on purpose.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, AgentState, Approval, Message, MessageLog, Middleware, StopWhen, Tool } from "effect-deepagents"
import {
  ApplyPatch,
  CompositeBackend,
  CustomBackend,
  CustomSandbox,
  FileTools,
  MemoryBackend,
  Permissions,
  StoreBackend
} from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { AgentClient, AgentEntity, Cron, DurableAgent } from "effect-deepagents/durable"
import {
  AskUser,
  BackgroundSubagents,
  BackgroundTasks,
  Budget,
  Filesystem,
  Guardrail,
  Handoffs,
  HumanInTheLoop,
  Memory,
  ModelFallback,
  ModelRetry,
  RemoteAgents,
  Rubric,
  Skills,
  Subagents,
  Summarization,
  Telemetry,
  Todos
} from "effect-deepagents/middleware"
import { ChatModels, ToolSchema } from "effect-deepagents/models"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { HarnessProfile } from "effect-deepagents/profiles"
import { Branch, Chat, JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { CredentialStore, MemoryStore, MemoryTools, Storage, TraceStore } from "effect-deepagents/stores"
import { AgentTest, TestBackend, TestChatModel } from "effect-deepagents/testing"
import { BackendConformance } from "effect-deepagents/testing/conformance"

export class Orders extends Context.Service<Orders, { readonly count: Effect.Effect<number> }>()("Orders") {}

export const tool = Tool.make("count_orders", {
  description: "Counts the orders",
  parameters: {},
  execute: () => Orders.use((orders) => Effect.map(orders.count, String))
})

export const agent = Agent.make({
  name: "clerk",
  prompt: "You count.",
  tools: [tool],
  stopWhen: [StopWhen.rounds(3)],
  output: Schema.Struct({ count: Schema.Finite })
})
export const plain = Agent.make({ name: "plain", prompt: "You answer." })
export const ask = (question: string) => Agent.run(agent, question)
export const watch = (question: string) => Agent.stream(agent, question)
export const begin = (question: string) => Agent.start(agent, question, { threadId: "thread" })
export const goOn = (threadId: string) => Agent.resume(agent, { threadId })
export const around = Agent.around(agent, Budget.make({ rounds: 3, onExhausted: "fail" }))
export const provided = Agent.provide(agent, Layer.succeed(Orders, { count: Effect.succeed(1) }))
export const asTool = Agent.asTool(agent)
export const detached = Agent.detached(agent)
export const delegate = (task: string) => Agent.delegate(agent, task)

export const deep = DeepAgent.make({
  name: "deep",
  prompt: "You work.",
  tools: [tool],
  execute: true,
  approvals: { destructive: true },
  subagents: [agent],
  backgroundSubagents: [plain],
  middleware: [
    Middleware.make({ name: "audit", beforeModel: () => Orders.use((orders) => Effect.asVoid(orders.count)) })
  ]
})
export const clerk = DeepAgent.subagent({ name: "clerk", description: "Counts", prompt: "You count.", tools: [tool] })

export class Denied extends Schema.TaggedError<Denied>()("Denied", {}) {}
export const notes = AgentState.slot("notes", { schema: Schema.Array(Schema.String), initial: [] })
export const strict = Middleware.make({
  name: "strict",
  state: [notes],
  wrapToolCall: (call, next, run) =>
    call.name === "rm"
      ? Effect.fail(new Denied())
      : Effect.andThen(
          run.state.update(notes, (all) => [...all, call.name]),
          next(call)
        )
})
export const suspending = Middleware.make({
  asks: true,
  name: "gate",
  rulings: (_run, calls) => Effect.succeed(calls.map(() => undefined))
})
export const observing = Middleware.make({
  name: "observing",
  wrapModelCall: (request, next) => next(request),
  afterModel: (_run, message) => Effect.log(Message.text(message))
})

export const middleware = [
  AskUser.make(),
  BackgroundSubagents.make({ agents: [agent] }),
  Budget.make({ rounds: 5, onExhausted: "finalAnswer" }),
  Filesystem.make(),
  Handoffs.make({ agents: [plain, agent] }),
  HumanInTheLoop.make({ destructive: true }),
  HumanInTheLoop.make({ destructive: true }),
  Memory.make({ sources: ["/AGENTS.md"] }),
  ModelFallback.make([TestChatModel.script([])]),
  ModelRetry.make(),
  Skills.make({ sources: ["/skills"] }),
  Subagents.make({ agents: [agent] }),
  Summarization.make(),
  Telemetry.make(),
  Todos.make()
]
export const guardrail = Guardrail.input({ name: "polite", check: () => Effect.succeed(Guardrail.pass) })
export const trip = Guardrail.trip("no")
export const rubric = Rubric.make
export const remote = RemoteAgents.make
export const task = (key: string) => BackgroundTasks.BackgroundTasks.use((tasks) => tasks.check(key))
export const startTask = BackgroundTasks.BackgroundTasks.useSync((tasks) => tasks.start)
export const fileTools = FileTools.make({ execute: true })

export const models = ChatModels.resolve("anthropic:claude-sonnet-5-5")
export const fit = ToolSchema.fit
export const anthropic = AnthropicChatModel.layerConfig({ model: "claude-sonnet-5-5" })
export const bedrock = BedrockChatModel.layerConfig({ model: "claude" })
export const nova = BedrockConverseChatModel.layerConfig({ model: "amazon.nova-pro-v1:0" })
export const openAi = OpenAiChatModel.layerConfig({ model: "gpt-5" })
export const compatible = OpenAiCompatibleChatModel.layer({ model: "m", baseURL: "http://localhost:1234/v1" })

export const files = MemoryBackend.layer()
export const stored = StoreBackend.layer({ namespace: "notes" })
export const folder = FilesystemBackend.layer({ root: "." })
export const shell = LocalShell.layer({ root: "." })
export const composite = CompositeBackend.layer({ default: files, routes: { "/docs": folder } })
export const customBackend = CustomBackend.make
export const customBackendLayer = CustomBackend.layer
export const customSandbox = CustomSandbox.make
export const permissions = Permissions.layer
export const policy = Permissions.compile({ rules: [] })
export const patch = ApplyPatch.parse("")
export const openFolder = FilesystemBackend.make

export const sessions = MemorySessions.layer
export const jsonl = JsonlSessions.layer({ folder: "threads" })
export const sql = SqlSessions.layer
export const sqlite = SqliteSessions.layer({ file: "threads.db" })
export const journal = SessionStore.journal
export const checkpoint = (threadId: string) => SessionStore.checkpoint(threadId)
export const chat = Chat.make(agent, "thread")
export const branch = Branch
export const memories = MemoryStore.layer
export const memoryTools = MemoryTools.make
export const traces = TraceStore.layer
export const credentials = CredentialStore.layer
export const storage = Storage
export const table = Storage.Storage.useSync((store) => store.table("notes"))

export const durable = DurableAgent.make({ name: "clerk", agent, output: Schema.Struct({ count: Schema.Finite }) })
export const execute = DurableAgent.execute
export const entity = AgentEntity.make({ name: "plain", agent: plain })
export const entityLayer = AgentEntity.layer(entity, {})
export const client = AgentClient.of(entity, "thread")
export const cron = Cron.layer
export const tasks = BackgroundTasks.layer
export const log = MessageLog.layerJsonl
export const answers = (request: Approval.Request) => [Approval.approve(request), Approval.reject(request)]

export const approvals = Layer.succeed(Approval.Approvals, {
  decide: (request) => Effect.succeed(Approval.approve(request))
})
export const profile = HarnessProfile.resolve(HarnessProfile.builtIn, "ollama", "qwen3")
export const script = TestChatModel.script(["Hello"])
export const turn = TestChatModel.text("Hello")
export const absent = BackendConformance.absent("it has none")
export const suite = BackendConformance.suite
export const testBackend = TestBackend
export const agentTest = AgentTest
