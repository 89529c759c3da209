/** Mistakes that no compiler sees: each ends the run, or is told to the model or in the log, in words that say what to do. */
import assert from "node:assert/strict"
import { Effect, Layer, Logger, Result } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { DeepAgent } from "effect-deepagents/deep"
import { ToolExclusion } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"
import { Chat } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"

const base = { name: "a", prompt: "p" } as const
const agent = Agent.make(base)
const model = TestChatModel.script(["x"], { exhaustive: false })
const never = Layer.succeed(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.reject(request)) })
const logged: Array<string> = []
const log = Logger.layer([Logger.make(({ cause, message }) => void logged.push(`${String(message)} ${String(cause)}`))])
const fakes = Layer.mergeAll(model, MemoryBackend.layer(), never)

let count = 0
const says = async (wanted: RegExp, run: Effect.Effect<unknown, { readonly message: string }>) => {
  const failure = await Effect.runPromise(Effect.flip(run))
  assert.match(failure.message, wanted)
  count++
}

// Names that are in no type: a wrong one would leave a tool without its gate.
const misspelt = DeepAgent.make({ ...base, approvals: { tools: { wite_file: true } } })
await says(
  /"wite_file", which is not a tool of the agent \(.* Did you mean "write_file"\?/,
  Effect.provide(Agent.run(misspelt, "x"), fakes)
)
const excluded = DeepAgent.make({ ...base, middleware: [ToolExclusion.make(["wite_file"])] })
await says(/correct the name, or remove it\. Did you mean/, Effect.provide(Agent.run(excluded, "x"), fakes))
const nothing = DeepAgent.make({ ...base, approvals: {} })
await says(/name tools, or say destructive: true/, Effect.provide(Agent.run(nothing, "x"), fakes))

// One in another spelling that can only mean one tool holds for it.
const other = DeepAgent.make({ ...base, approvals: { tools: { "Write-File": true } } })
const write = TestChatModel.calls([{ name: "write_file", arguments: { file_path: "/a", content: "a" } }])
const kept = await Effect.runPromise(
  Effect.provide(Agent.run(other, "x"), [TestChatModel.script([write, "x"]), MemoryBackend.layer(), never])
)
assert.deepEqual(Result.getOrThrow(MemoryBackend.files(kept.state)), {})
count++

// What a program lacks.
for (const [name, key] of [
  ["anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY"],
  ["openai:gpt-5.4-mini", "OPENAI_API_KEY"],
  ["groq:llama", "GROQ_API_KEY"]
] as const) {
  await says(new RegExp(`set ${key}, or give apiKey`), Effect.provide(Agent.run(agent, "x"), ChatModels.resolve(name)))
}
await says(
  /Write it as provider:model, with one of anthropic/,
  Effect.provide(Agent.run(agent, "x"), ChatModels.resolve("claude"))
)
await says(
  /could not be loaded; install it: npm install @/,
  Effect.provide(Agent.run(agent, "x"), ChatModels.resolve("bedrock:m"))
)
await says(/is empty, and there is no history to continue/, Effect.provide(Agent.run(agent, ""), model))
await says(
  /make this folder first/,
  Effect.provide(Agent.run(DeepAgent.make(base), "x"), [model, FilesystemBackend.layer({ root: "./missing" })])
)
const chat = Effect.flatMap(Chat.make(agent, "ada"), (one) => one.send("x"))
await says(
  /its folder must exist, and this process must be allowed to write there/,
  Effect.provide(chat, [model, SqliteSessions.layer({ file: "./missing/threads.db" })])
)

// Tools that are written as in another library: the model reads what a promise failed with, the log tells the author.
const told = async (execute: () => unknown, wanted: RegExp) => {
  const parameters = {}
  // Programs without types can give anything.
  const typed = execute as () => Effect.Effect<string>
  const using = Agent.make({ ...base, tools: [Tool.make("t", { description: "d", parameters, execute: typed })] })
  const script = TestChatModel.script([TestChatModel.calls([{ name: "t", arguments: {} }]), "done"])
  const { messages } = await Effect.runPromise(Effect.provide(Agent.run(using, "x"), [script, log]))
  assert.match([...messages.map(Message.text), ...logged].join("\n"), wanted)
  count++
}
await told(() => Effect.tryPromise(async () => Promise.reject(new Error("boom inside"))), /boom inside/)
await told(async () => Promise.reject(new Error("no stock")), /no stock/)
await told(async () => ({ a: 1 }), /\{"a":1\}/)
await told(async () => undefined, /gave undefined, not a text, a ToolOutput or data/)
await told(async () => Effect.succeed("x"), /gave an Effect, not a value; return the Effect itself/)

console.log(`${count} mistakes of programs are answered`)
