/**
 * A chat that survives `kill -9`: a process dies in the middle of a tool call, and another one goes on with the chat. What
 * only reads runs again; a payment does not: the model is told that nobody knows whether it went through.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Schema, Stream } from "effect"
import { Agent, Checkpoint, Message, Tool } from "effect-deepagents"
import { Chat } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { ChildProcess } from "effect/process"

const [role, given = ""] = process.argv.slice(2)

const makeAgent = (folder: string) => {
  const note = (line: string) =>
    FileSystem.FileSystem.use((fs) => fs.writeFileString(`${folder}/ledger.txt`, `${line}\n`, { flag: "a" }))
  const readCart = Tool.make("read_cart", {
    description: "What is in the cart",
    parameters: {},
    annotations: { readOnly: true },
    execute: () => Effect.as(note("read"), "One book, 20 EUR")
  })
  const charge = Tool.make("charge_card", {
    description: "Charges the customer's card",
    parameters: { amount: Schema.Int },
    execute: Effect.fnUntraced(function* ({ amount }) {
      yield* note(`charged ${amount}`)
      if (role === "child") {
        yield* Console.log("charging")
        yield* Effect.never
      }
      return "charged"
    })
  })
  return Agent.make({ name: "clerk", prompt: "You sell books.", tools: [readCart, charge] })
}

const openChat = (folder: string) => Chat.make(makeAgent(folder), "order 42", { metadata: { customer: "ada" } })
const sessions = (folder: string) => SqliteSessions.layer({ file: `${folder}/chats.db` })

const child = (folder: string) =>
  Effect.flatMap(openChat(folder), (chat) => chat.send("I take it")).pipe(
    Effect.provide([
      sessions(folder),
      TestChatModel.script([
        TestChatModel.calls([{ name: "read_cart" }, { name: "charge_card", arguments: { amount: 20 } }])
      ])
    ])
  )

const parent = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()

  const other = yield* ChildProcess.make(
    process.execPath,
    [...process.execArgv, import.meta.filename, "child", folder],
    {
      stderr: "inherit"
    }
  )
  yield* other.stdout.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.takeUntil((line) => line === "charging"),
    Stream.runDrain
  )
  yield* other.kill({ killSignal: "SIGKILL" })
  yield* Console.log("The process is gone, in the middle of a payment.")

  const resumed = Effect.gen(function* () {
    const chat = yield* openChat(folder)
    const { messages } = yield* chat.send(Checkpoint.resume(undefined))
    for (const message of messages) yield* Console.log(`${message.role}: ${Message.text(message)}`)
    return messages
  })
  const script = TestChatModel.script([
    "I don't know if your card was charged. Let me look into it before I try again."
  ])
  const messages = yield* Effect.provide(resumed, [sessions(folder), script])

  const ledger = (yield* fs.readFileString(`${folder}/ledger.txt`)).split("\n")
  assert.equal(ledger.filter((line) => line === "charged 20").length, 1)
  assert.deepEqual(AgentTest.pairingProblems(messages), [])
  const answers = messages.filter((message) => message.role === "tool")
  assert.deepEqual(
    answers.map(({ isError, toolName }) => [toolName, isError]),
    [
      ["read_cart", false],
      ["charge_card", true]
    ]
  )
})

const program = role === "child" ? child(given) : parent
NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
