/**
 * One turn of an agent with a thread in a file: each word of `argv` is a process of its own.
 */
import { appendFileSync, writeSync } from "node:fs"
import { Agent, Approval, Checkpoint, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { layer } from "./stores.ts"

const [kind = "", path = "", what = ""] = process.argv.slice(2)

const tell = (value: unknown) => writeSync(1, `${JSON.stringify(value)}\n`)

const log = (line: string) => Effect.sync(() => appendFileSync(`${path}/did.txt`, `${line}\n`))

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: Effect.fnUntraced(function* ({ amount }) {
    yield* log(`pay ${amount}`)
    if (what === "crash") {
      tell("in the tool")
      yield* Effect.sleep("1 minute")
    }
    return `paid ${amount}`
  })
})

const look = Tool.make("look", {
  description: "Looks",
  parameters: {},
  annotations: { readOnly: true },
  execute: () => Effect.as(log("look"), "seen")
})

const gated = Agent.make({
  name: "teller",
  prompt: "",
  tools: [pay, look],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const free = Agent.make({ name: "teller", prompt: "", tools: [pay, look] })

const calls = TestChatModel.calls([
  { name: "look", arguments: {} },
  { name: "pay", arguments: { amount: 7 } }
])

const words = Array.from({ length: 400 }, (_, n) => `word${n} `)
const slowly = TestChatModel.text(words, { chunkDelay: "5 millis" })

const script = what === "stream" ? [slowly] : what === "suspend" || what === "crash" ? [calls] : ["all done"]

const program = Effect.gen(function* () {
  switch (what) {
    case "stream":
      return yield* Stream.runForEach(Agent.stream(free, "tell", { threadId: "t" }), (event) =>
        Effect.sync(() => event._tag === "TextDelta" && tell([Date.now(), event.text]))
      )
    case "read": {
      const last = (yield* SessionStore.checkpoint("t"))?.messages.at(-1)
      const { text } = yield* Agent.resume(free, { threadId: "t" })
      const messages = (yield* SessionStore.checkpoint("t"))?.messages ?? []
      return tell({
        isPartial: Message.isPartial(last),
        said: last === undefined ? "" : Message.text(last),
        text,
        roles: messages.map(({ role }) => role)
      })
    }
    case "suspend": {
      const { pending, stopReason } = yield* Agent.run(gated, "pay 7", { threadId: "t" })
      return tell({ stopReason, pending: pending.map(({ toolName }) => toolName) })
    }
    case "decide": {
      const checkpoint = yield* SessionStore.checkpoint("t")
      if (checkpoint === undefined) return tell("no thread")
      const pending = yield* Checkpoint.pending(checkpoint)
      const decisions = pending.map((request) => Approval.approve(request))
      const { messages, stopReason, text } = yield* Agent.resume(gated, { threadId: "t", decisions })
      return tell({ stopReason, text, problems: AgentTest.pairingProblems(messages) })
    }
    case "crash":
      return yield* Agent.run(free, "pay 7", { threadId: "t" })
    default: {
      const { messages, rounds, text } = yield* Agent.resume(free, { threadId: "t" })
      const answers = messages.flatMap((message) =>
        message.role === "tool" ? [[message.toolName, message.isError]] : []
      )
      return tell({ text, rounds, answers, problems: AgentTest.pairingProblems(messages) })
    }
  }
})

const sessions = SessionStore.journalWith({ parts: what === "stream" }).pipe(Layer.provideMerge(layer(kind, path)))

await Effect.runPromise(Effect.provide(program, [sessions, TestChatModel.script(script)]))
