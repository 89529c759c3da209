/**
 * Mistakes of programs without types, as people made them with only the docs. Each line that is printed is a mistake and
 * what its program says.
 */
import { Cause, Effect, Exit, Layer, Logger, Stream } from "effect"
import { Agent, AgentPromise, Checkpoint, Middleware, Tool, Backend } from "effect-deepagents"
import { AgentFile } from "effect-deepagents/agents"
import { CompositeBackend, MemoryBackend, Permissions } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { GitHub } from "effect-deepagents/connect"
import { DeepAgent } from "effect-deepagents/deep"
import { Budget, Guardrail, HumanInTheLoop, ModelRetry, Subagents, ToolTimeout } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { Network } from "effect-deepagents/net"
import { Branch, Chat, MemorySessions } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { Storage, TraceExport, TraceStore } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { WebSearch } from "effect-deepagents/web"
import { FetchHttpClient, HttpClient } from "effect/http"

const base = { name: "d", prompt: "p" }
const model = TestChatModel.script(["ok"], { exhaustive: false })
const layers = Layer.mergeAll(MemoryBackend.layer(), model)
const tool = Tool.make("t", { description: "d", parameters: {}, execute: () => Effect.succeed("x") })
const agent = Agent.make(base)
const logged = []
const log = Logger.layer([Logger.make(({ cause, message }) => void logged.push(`${String(message)} ${String(cause)}`))])

const tell = (name, says) => console.log(JSON.stringify({ name, says }))

/** What a program says: its failure, the defect with its class, or that it threw. */
const run = async (name, make) => {
  try {
    const made = make()
    const effect = Layer.isLayer(made)
      ? Effect.scoped(Layer.build(made))
      : Effect.isEffect(made)
        ? made
        : Agent.run(made, "hi")
    const exit = await Effect.runPromiseExit(Effect.provide(effect, [layers, log]))
    if (Exit.isSuccess(exit)) return tell(name, "NOTHING: it ran")
    const error = Cause.squash(exit.cause)
    tell(name, `${error instanceof TypeError ? "RAW " : ""}${error?.message ?? error}`)
  } catch (error) {
    tell(name, `RAW ${String(error)}`)
  }
}

const withTool = (options, name = "t") => Agent.make({ ...base, tools: [Tool.make(name, options)] })
const using = (middleware) => Agent.make({ ...base, middleware: [middleware] })

// Names of options.
await run("approval", () => DeepAgent.make({ ...base, approval: { tools: { write_file: true } } }))
await run("middlewares", () => DeepAgent.make({ ...base, middlewares: [HumanInTheLoop.make({ destructive: true })] }))
await run("maxRound", () => DeepAgent.make({ ...base, maxRound: 1 }))
await run("toolz", () => Agent.make({ ...base, toolz: [] }))
await run("approvals.tool", () => DeepAgent.make({ ...base, approvals: { tool: {} } }))
await run("approvals.tools.write_file.alow", () =>
  DeepAgent.make({ ...base, approvals: { tools: { write_file: { alow: ["approve"] } } } })
)
await run("no prompt", () => Agent.make({ name: "a" }))
await run("no options", () => Agent.make())
await run("threadID", () => Agent.run(agent, "hi", { threadID: "t" }))
await run("stream threadID", () => Stream.runDrain(Agent.stream(agent, "hi", { threadID: "t" })))
await run("resume decision", () => Agent.resume(agent, { checkpoint: {}, decision: [] }))
await run("Checkpoint.resume decision", () => Agent.run(agent, Checkpoint.resume(undefined, { decision: [] })))
await run("Tool.make params", () => withTool({ description: "d", params: {}, execute: () => Effect.succeed("x") }))
await run("Middleware.make beforModel", () => using(Middleware.make({ name: "m", beforModel: () => Effect.void })))

// Values of options.
await run("files: [read_fil]", () => DeepAgent.make({ ...base, files: ["read_fil"] }))
await run("allow: [accept]", () =>
  DeepAgent.make({ ...base, approvals: { tools: { write_file: { allow: ["accept"] } } } })
)
await run("wrong tool name", () => DeepAgent.make({ ...base, approvals: { tools: { wite_file: true } } }))
await run("tools: {…}", () => Agent.make({ ...base, tools: { t: tool } }))
await run("deep tools: {…}", () => DeepAgent.make({ ...base, tools: { t: tool } }))
await run("tools of another library", () => Agent.make({ ...base, tools: [{ description: "d", inputSchema: {} }] }))
await run("middleware that is none", () => Agent.make({ ...base, middleware: [{ name: "m" }] }))
await run("parameters: { x: 'string' }", () =>
  withTool({ description: "d", parameters: { x: "string" }, execute: () => Effect.succeed("x") })
)
await run("bad tool name", () =>
  withTool({ description: "d", parameters: {}, execute: () => Effect.succeed("") }, "a b")
)
await run("two tools of one name", () => Agent.make({ ...base, tools: [tool, tool] }))
await run("messages of another library", () => Agent.run(agent, [{ role: "user", content: "hi" }]))
await run("history of another library", () =>
  Agent.run(agent, "hi", { history: [{ role: "assistant", content: "hi" }] })
)
await run("empty input", () => Agent.run(agent, ""))
await run("input that is none", () => Agent.run(agent, undefined))
await run("output that is none", () => Agent.make({ ...base, output: { answer: "string" } }))
await run("subagents without agent", () => using(Subagents.make({ agent: [] })))

// What fails open.
await run("Budget token", () => using(Budget.make({ token: 1, onExhausted: "fail" })))
await run("Budget without a limit", () => using(Budget.make({ onExhausted: "fail" })))
await run("Budget onExhausted: stop", () => using(Budget.make({ tokens: 1, onExhausted: "stop" })))
await run("ToolTimeout tool", () => using(ToolTimeout.make({ tool: { t: "5 seconds" } })))
await run("ModelRetry within: 5 mins", () => using(ModelRetry.make({ within: "5 mins" })))
await run("Guardrail onTripp", () =>
  using(Guardrail.input({ name: "g", check: () => Effect.succeed(Guardrail.pass), onTripp: "fail" }))
)
await run("Permissions defualt", () => Permissions.layer({ rules: [], defualt: "deny" }))
await run("Permissions path", () =>
  Permissions.layer({ rules: [{ operations: ["read"], path: "/a", ruling: "refuse" }] })
)
await run("Permissions ruling", () =>
  Permissions.layer({ rules: [{ operations: ["read"], paths: ["/a"], ruling: "refus" }] })
)
await run("Network alow", () =>
  HttpClient.get("https://other.com").pipe(
    Effect.provide(Layer.provide(Network.layer({ alow: ["example.com"] }), FetchHttpClient.layer))
  )
)
await run("MemoryBackend fils", () => MemoryBackend.layer({ fils: {} }))
await run("FilesystemBackend path", () => FilesystemBackend.layer({ path: "." }))
await run("Bash netwrok", () => Layer.provide(Bash.layer({ netwrok: [] }), MemoryBackend.layer()))
await run("CompositeBackend route", () => CompositeBackend.layer({ default: MemoryBackend.layer(), route: {} }))
await run("Agent.provide of a layer that was not called", () => Agent.provide(agent, MemoryBackend.layer))
await run("Agent.provide of several layers", () => Agent.provide(agent, [model, MemoryBackend.layer()]))
await run("AgentPromise.make of a layer that was not called", () =>
  Effect.promise(() => AgentPromise.make(agent, MemoryBackend.layer).run("hi"))
)
await run("AgentPromise.make without a layer", () => Effect.promise(() => AgentPromise.make(agent).run("hi")))
await run("a thread without a journal", () => Agent.run(agent, "hi", { threadId: "t" }))
await run("a run without a model", () =>
  Effect.tryPromise({ try: () => Effect.runPromise(Agent.run(agent, "hi")), catch: (error) => error })
)
await run("Chat.make buzy", () =>
  Chat.make(agent, "ada", { buzy: "refuse" }).pipe(Effect.provide(MemorySessions.layer))
)
await run("Branch.leave summariser", () =>
  Branch.leave("ada", { to: null, summariser: Branch.summarizer }).pipe(Effect.provide(MemorySessions.layer))
)
await run("TraceExport.send serviceNam", () =>
  TraceExport.send("run", { url: "http://localhost:1", serviceNam: "a" }).pipe(
    Effect.provide([Layer.provide(TraceStore.layer, Storage.layerMemory), FetchHttpClient.layer])
  )
)
await run("AgentFile.parse claud", () => AgentFile.parse("", { path: "a.md", claud: true }))
await run("SqliteSessions path", () => SqliteSessions.layer({ path: "t.db" }))

// Keys.
await run("a plain key", () => AnthropicChatModel.layer({ model: "m", apiKey: "sk-secret" }))
await run("a plain key by name", () => ChatModels.resolve("openai:m", { apiKey: "sk-secret" }))
await run("a misspelt key", () => OpenAiChatModel.layer({ model: "m", apikey: "sk-secret" }))
await run("a plain key of a search", () => WebSearch.tavily({ apiKey: "sk-secret" }))
await run("a connector without options", () => Agent.make({ ...base, tools: GitHub.tools() }))
await run("unknown provider", () => ChatModels.resolve("opnai:m"))

// Tools as in another library: the model is told, and the log has why.
const told = async (name, execute) => {
  logged.length = 0
  const script = TestChatModel.script([TestChatModel.calls([{ name: "t", arguments: {} }]), "ok"])
  const one = withTool({ description: "d", parameters: {}, execute })
  const exit = await Effect.runPromiseExit(Effect.provide(Agent.run(one, "hi"), [script, log]))
  tell(name, Exit.isFailure(exit) ? `RAW ${String(Cause.squash(exit.cause))}` : logged.join("\n") || "NOTHING: it ran")
}
await told("a tool that throws", () => {
  throw new Error("bug")
})
await told("a tool that gives nothing", () => undefined)
await told("a tool whose backend nobody provides", () => Backend.Backend.use((backend) => backend.read("/a")))
