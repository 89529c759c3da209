/**
 * The first program of docs/sessions.md, which prints too. `argv` says where, whether its tool ends, and whether
 * `runMain` runs it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Agent, Message, Tool } from "effect-deepagents"
import { Chat } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { Printer } from "effect-deepagents/view"
import * as Effect from "effect/Effect"
import { layer } from "./stores.ts"

const [path = "", end = "", main = ""] = process.argv.slice(2)

const look = Tool.make("look", {
  description: "Looks",
  parameters: {},
  execute: () => {
    console.log("looking")
    return Effect.as(Effect.sleep(end === "ends" ? 0 : "1 hour"), "seen")
  },
  annotations: { readOnly: true }
})

const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  return last?.role === "tool"
    ? TestChatModel.text(Message.text(last))
    : TestChatModel.calls([{ name: "look", arguments: {} }])
})

const agent = Agent.make({ name: "helper", prompt: "You help.", tools: [look] })

const program = Effect.gen(function* () {
  const chat = yield* Chat.make(agent, "ada")
  const { state } = yield* chat.status
  console.log(state)
  const { text } = yield* state === "unfinished" ? chat.resume() : chat.send("Look.")
  console.log(text)
}).pipe(
  Effect.onInterrupt(() => Effect.sync(() => console.log("wound up"))),
  Effect.provide([layer("sqlite", path), model]),
  Printer.orExit
)

if (main === "main") NodeRuntime.runMain(program)
else await Effect.runPromise(program)
