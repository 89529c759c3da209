/** An agent whose gate takes its time before it asks, in a thread of SQLite. `argv` is the place, the input, and whether requests are approved. It is stopped, or killed, while the gate is at work. */
import { appendFileSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Agent, Approval, Checkpoint, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { layer } from "./stores.ts"

const [path = "", input = "", what = "", delay = ""] = process.argv.slice(2)

const ship = Tool.make("ship", {
  description: "Ships",
  parameters: { to: Schema.String },
  execute: ({ to }) => Effect.sync(() => (appendFileSync(`${path}/did.txt`, `ship ${to}\n`), `shipped ${to}`))
})

const gate = Middleware.make({
  asks: true,
  name: "slow",
  rulings: (_run, calls) =>
    Effect.sync(() => writeSync(1, "gate\n")).pipe(
      Effect.andThen(Effect.sleep(Number(delay))),
      Effect.as(calls.map(() => Ruling.ask("test", { description: "ship?" })))
    )
})

const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  const said = last === undefined ? "" : Message.text(last)
  return last?.role === "tool" ? said : TestChatModel.calls([{ name: "ship", arguments: { to: said } }])
})

const agent = Agent.make({ name: "guard", prompt: "", tools: [ship], middleware: [gate] })

const program = Effect.gen(function* () {
  const checkpoint = yield* Effect.catchIf(
    SessionStore.checkpoint("t"),
    ({ reason }) => reason._tag === "NotFound",
    () => Effect.undefined
  )
  const isThere = checkpoint?.messages.some((message) => Message.text(message) === input) ?? false
  if (!isThere) return yield* Agent.run(agent, input, { threadId: "t" })
  const pending = checkpoint === undefined ? [] : yield* Checkpoint.pending(checkpoint)
  const decisions = what === "approve" ? pending.map((request) => Approval.approve(request)) : []
  return yield* Agent.resume(agent, { threadId: "t", decisions })
}).pipe(
  Effect.flatMap(({ pending, stopReason, text }) =>
    Effect.sync(() => writeSync(1, `${JSON.stringify({ stopReason, text, asked: pending.length })}\n`))
  ),
  Effect.provide(SessionStore.journal.pipe(Layer.provideMerge(layer("sqlite", path)), Layer.merge(model)))
)

NodeRuntime.runMain(program)
