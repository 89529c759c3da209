/**
 * A program with a thread, killed at one of its effects or let run: `argv` says which, and where.
 */
import { appendFileSync, writeSync } from "node:fs"
import { Agent, Message, Tool } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { layer } from "./stores.ts"

const [path = "", name = "", killAt = "", what = ""] = process.argv.slice(2)

let count = 0

/** An effect on the world: it is done when it is written down, and then the process may be gone. */
const effect = (line: string): void => {
  appendFileSync(`${path}/did.txt`, `${line}\n`)
  if (++count === Number(killAt)) process.kill(process.pid, "SIGKILL")
}

const build = Tool.make("build", {
  description: "Builds",
  parameters: { part: Schema.String },
  execute: ({ part }) =>
    Effect.sync(() => {
      effect(`build ${part}`)
      return `built ${part}`
    })
})

/** The worker builds once in each attempt; the judge is content with the third. */
const model = TestChatModel.reactive((request) => {
  const turns = request.messages.filter(({ role }) => role === "human").length
  const last = request.messages.at(-1)
  const said = last === undefined ? "" : Message.text(last)
  if (request.systemPrompt === "judge") {
    const met = said.includes("3")
    effect(`judge ${said}`)
    return JSON.stringify({ met, feedback: "more" })
  }
  effect(`${last?.role === "tool" ? "say" : "work"} ${turns}`)
  return last?.role === "tool"
    ? `${said} ${turns}`
    : TestChatModel.calls([{ name: "build", arguments: { part: `part ${turns}` } }])
})

const worker = Agent.make({ name: "worker", prompt: "worker", tools: [build] })
const judge = Agent.make({
  name: "judge",
  prompt: "judge",
  output: Schema.Struct({ met: Schema.Boolean, feedback: Schema.String })
})

const goal = Agent.program({
  name: "goal",
  run: Effect.fnUntraced(function* (task) {
    for (let asked = task, round = 1; ; round++) {
      const text = yield* Agent.answer(worker, asked, { session: "worker" })
      const { feedback, met } = yield* Agent.answer(judge, `${round}: ${text}`)
      if (met || round === 5) return `${round} rounds`
      asked = feedback
    }
  })
})

const ten = Agent.program({
  name: "ten",
  run: Effect.fnUntraced(function* () {
    let sum = 0
    for (let n = 1; n <= 10; n++) {
      sum += yield* Agent.step(
        "add",
        Effect.sync(() => {
          effect(`add ${n}`)
          return n
        }),
        Schema.Finite
      )
    }
    return `${sum}`
  })
})

const program = name === "ten" ? ten : goal

const main = Effect.gen(function* () {
  const { text, usage } =
    what === "run"
      ? yield* Agent.run(program, "go", { threadId: "t" })
      : yield* Agent.resume(program, { threadId: "t" })
  const left = Object.keys((yield* SessionStore.checkpoint("t"))?.state ?? {})
  const inside = left.filter((slot) => slot.startsWith("inside"))
  writeSync(1, `${JSON.stringify({ text, inside, tokens: usage.inputTokens + usage.outputTokens })}\n`)
})

const sessions = SessionStore.journal.pipe(Layer.provideMerge(layer("sqlite", path)))

await Effect.runPromise(Effect.provide(main, [sessions, model]))
