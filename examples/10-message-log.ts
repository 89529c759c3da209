/**
 * Keeping conversations: every message goes to a file as it is appended, one JSON object a line, and can be read back.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Path, Schema } from "effect"
import { Agent, Message, MessageLog, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const clock = Tool.make("clock", {
  description: "Tells the time",
  parameters: {},
  execute: () => Effect.succeed("12:00")
})

const agent = Agent.make({ name: "butler", prompt: "You serve.", tools: [clock] })

const model = TestChatModel.script([TestChatModel.calls([{ name: "clock" }]), "It is noon, sir."])

const Line = Schema.fromJsonString(Schema.Struct({ agent: Schema.String, round: Schema.Finite, message: Schema.Json }))

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(yield* fs.makeTempDirectoryScoped(), "messages.jsonl")

  const result = yield* Agent.run(agent, "What time is it?").pipe(Effect.provide(MessageLog.layerJsonl(file)))

  const lines = (yield* fs.readFileString(file)).trimEnd().split("\n")
  const messages = yield* Effect.forEach(
    lines,
    Effect.fnUntraced(function* (line) {
      const logged = yield* Schema.decodeEffect(Line)(line)
      const message = yield* Message.decode(logged.message)
      yield* Console.log(`${logged.agent}, round ${logged.round}, ${message.role}: ${Message.text(message)}`)
      return message
    })
  )
  // What was read back is the conversation, fit to be the history of another run.
  assert.deepEqual(messages, result.messages)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide([model, NodeServices.layer])))
