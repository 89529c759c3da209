/** Runs wherever it is said to: core, a deep agent with a shell, a thread in SQLite, from one file. */
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"

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
rmSync(root, { recursive: true })
console.log("a deep agent, a command, a thread: ok")
