import { existsSync } from "node:fs"
/** A process that attends the mailbox "base" on one SQLite file. `argv` is the folder. It says each question that it gets. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Attendant, Channel } from "effect-deepagents/patterns"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"

const [folder = ""] = process.argv.slice(2)

const model = TestChatModel.reactive(({ messages }) => {
  process.stdout.write(
    `${Message.text(messages.at(-1) ?? Message.human(""))
      .split("\n")
      .at(-1)}\n`
  )
  return existsSync(`${folder}/hang`) ? TestChatModel.hang : "noted"
})
const base = Agent.make({ name: "base", prompt: "You lead." })
const places = Layer.merge(SqlSessions.layer, Layer.provide(Channel.layer(), Storage.layerSql)).pipe(
  Layer.provide(SqliteClient.layer({ file: `${folder}/all.db` }))
)

NodeRuntime.runMain(
  Effect.provide(Attendant.attend(base, { threadId: "t", mailbox: "base" }), Layer.merge(places, model))
)
