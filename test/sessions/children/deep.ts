/**
 * A deep agent three levels down with a thread, killed at one of its effects or let run: `argv` says where.
 */
import { appendFileSync, writeSync } from "node:fs"
import { Agent, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { layer } from "./stores.ts"

const [kind = "", path = "", killAt = "", what = ""] = process.argv.slice(2)

let count = 0

/** An effect on the world: it is done when it is written down, and then the process may be gone. */
const effect = (line: string): void => {
  appendFileSync(`${path}/did.txt`, `${line}\n`)
  if (++count === Number(killAt)) process.kill(process.pid, "SIGKILL")
}

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { to: Schema.String },
  execute: ({ to }) =>
    Effect.sync(() => {
      effect(`pay ${to}`)
      return `paid ${to}`
    })
})

const step = (to: string) => TestChatModel.calls([{ name: "pay", arguments: { to } }])

const task = (subagent_type: string) =>
  TestChatModel.calls([{ name: "task", arguments: { subagent_type, description: `pay as ${subagent_type}` } }])

const levels = ["top", "middle", "bottom"]

/** Each level pays, has the next level do the same, and ends. */
const model = TestChatModel.reactive((request) => {
  const at = levels.findIndex((level) => request.systemPrompt.includes(`You are ${level}.`))
  const level = levels[at] ?? "?"
  const below = levels[at + 1]
  const turns = request.messages.filter(({ role }) => role === "ai").length
  effect(`ask ${level} ${turns}`)
  if (turns === 0) return step(level)
  if (turns === 1 && below !== undefined) return task(below)
  const said = request.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
  return `${level}: ${said.join(" + ")}`
})

const bottom = DeepAgent.subagent({ name: "bottom", description: "b", prompt: "You are bottom.", tools: [pay] })
const middle = DeepAgent.make({
  name: "middle",
  description: "m",
  prompt: "You are middle.",
  tools: [pay],
  subagents: [bottom]
})
const top = DeepAgent.make({ name: "top", prompt: "You are top.", tools: [pay], subagents: [middle] })

const program = Effect.gen(function* () {
  const { messages, state, text } =
    what === "run" ? yield* Agent.run(top, "pay", { threadId: "t" }) : yield* Agent.resume(top, { threadId: "t" })
  const left = Object.keys((yield* SessionStore.checkpoint("t"))?.state ?? {})
  const problems = AgentTest.pairingProblems(messages)
  const inside = [...left, ...Object.keys(state)].filter((slot) => slot.startsWith("inside"))
  writeSync(1, `${JSON.stringify({ text, problems, inside })}\n`)
})

const sessions = SessionStore.journal.pipe(Layer.provideMerge(layer(kind, path)))

await Effect.runPromise(Effect.provide(program, [sessions, model, MemoryBackend.layer()]))
