/** Runs wherever it is said to: core, a deep agent with a shell, a thread in SQLite, a server, from one file. */
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter } from "effect/http"

const root = mkdtempSync(join(tmpdir(), "runtimes-"))
const weather = Tool.make("weather", {
  description: "Weather of a city",
  parameters: { city: Schema.String },
  execute: ({ city }) => Effect.succeed(`${city}: clear`)
})
const agent = DeepAgent.make({ name: "hello", prompt: "You help.", tools: [weather], execute: true })
const threads = SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: join(root, "threads.db") })))

const ask = (question: string, ...turns: ReadonlyArray<TestChatModel.Turn>) =>
  Effect.runPromise(
    Agent.run(agent, question, { threadId: "ada" }).pipe(
      Effect.provide([threads, LocalShell.layer({ root }), TestChatModel.script(turns)])
    )
  )

const first = await ask(
  "How is Oslo?",
  TestChatModel.calls([
    { name: "weather", arguments: { city: "Oslo" } },
    { name: "write_file", arguments: { file_path: "/a.txt", content: "Oslo\n" } }
  ]),
  TestChatModel.calls([{ name: "execute", arguments: { command: "cat a.txt" } }]),
  "Clear."
)
const said = first.messages.map(Message.text).join("\n")
assert.match(said, /Oslo: clear/)
assert.match(said, /Oslo\n/)
// Another layer over the same file: the thread is there again.
const second = await ask("Sure?", "Yes.")
assert.equal(second.messages.filter(({ role }) => role === "human").length, 2)

// A server as a Web handler: a run that waits for a decision, its events, and those behind the last one.
const clerk = Agent.make({
  name: "clerk",
  prompt: "You help.",
  tools: [weather],
  middleware: [HumanInTheLoop.make({ tools: { weather: true } })]
})
const calling = TestChatModel.calls([{ name: "weather", arguments: { city: "Oslo" } }])
const runs = Server.layer({ clerk }).pipe(
  Layer.provide([Storage.layerMemory, TestChatModel.script([calling, "It is clear."])]),
  Layer.provideMerge(SqliteSessions.layer({ file: join(root, "served.db") }))
)
const auth = Server.bearer({
  verify: (token) =>
    Redacted.value(token) === "token"
      ? Effect.succeed({ tenant: "acme", id: "ada", roles: [] })
      : Effect.fail(new Server.Unauthorized())
})
const app = Server.http({ hosts: ["app.example.com"] }).pipe(Layer.provide([runs, auth]))
const { dispose, handler } = HttpRouter.toWebHandler(app, { disableLogger: true })
const call = async (path: string, body?: object, headers: Record<string, string> = {}) => {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
  const all = { authorization: "Bearer token", "content-type": "application/json", ...headers }
  return (await handler(new Request(`https://app.example.com/threads/t${path}`, { ...init, headers: all }))).text()
}
assert.match(await call("/runs", { agent: "clerk", input: "How is Oslo?", id: "1" }), /"isNew":true/)
const events = await call("/events")
const [, id] = /"_tag":"ApprovalRequested"[^\n]*?"id":"([^"]+)"/.exec(events) ?? []
const last = [...events.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? ""
await call("/decisions", { decisions: [{ _tag: "Approve", id }] })
const rest = await call("/events", undefined, { "last-event-id": last })
assert.match(rest, /Oslo: clear[^]*It is clear\.[^]*"_tag":"RunCompleted"/)
assert.doesNotMatch(rest, /How is Oslo/)
await dispose()
rmSync(root, { recursive: true })
console.log("a deep agent, a command, a thread, a server: ok")
