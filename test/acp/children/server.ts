/** A server of a coder whose turns have effects: `node server.ts DATABASE EFFECTS [HANG]`. It is killed, and
 * started again. `HANG` names a line, and whether its call hangs `before` or `after` its effect: `2:after`. */
import { appendFileSync } from "node:fs"
import { NodeRuntime, NodeStdio } from "@effect/platform-node"
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { AcpServer } from "effect-deepagents/acp"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"

const [, , database = "", effects = "", hang = ""] = process.argv

const hangAt = (place: string) => (place === hang ? Effect.never : Effect.void)

const append = Tool.make("append", {
  description: "Appends a line.",
  parameters: { line: Schema.String },
  execute: ({ line }) =>
    hangAt(`${line}:before`).pipe(
      Effect.tap(() => Effect.sync(() => appendFileSync(effects, `${line}\n`))),
      Effect.tap(() => hangAt(`${line}:after`)),
      Effect.as(`appended ${line}`)
    )
})

/** The model appends six lines, one a round, and then answers. */
const model = TestChatModel.reactive(({ messages }) => {
  const rounds = messages.filter(({ role }) => role === "tool").length
  if (rounds === 6) return TestChatModel.text(`All is done: ${messages.map(Message.text).join("|")}`)
  return TestChatModel.calls([{ id: `c${rounds}`, name: "append", arguments: { line: String(rounds) } }], {
    text: `Round ${rounds}. `
  })
})

const coder = Agent.make({ name: "coder", prompt: "You code.", tools: [append] })

const main = AcpServer.layer({ agents: { coder } }).pipe(
  Layer.provide([NodeStdio.layer, SqliteSessions.layer({ file: database }), model]),
  Layer.launch
)

NodeRuntime.runMain(main)
