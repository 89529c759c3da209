import { appendFileSync, existsSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
/**
 * A server of all protocols on SQLite, which is killed at work: a folder and a port as arguments. Its model is slow enough
 * to be watched, each payment is noted in the file `paid`, and the last turn waits for the file `go`.
 */
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Redacted, Schema, Stream } from "effect"
import { Agent, ChatModel, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter } from "effect/http"

const [folder = "", port = "0", page] = process.argv.slice(2)
const parameters = { n: Schema.Finite }

const note = Tool.make("note", {
  description: "Notes a number",
  parameters,
  annotations: { idempotent: true },
  execute: ({ n }) => Effect.as(Effect.sleep("5 millis"), `noted ${n}`)
})
const pay = Tool.make("pay", {
  description: "Pays",
  parameters,
  execute: ({ n }) =>
    Effect.sync(() => {
      appendFileSync(join(folder, "paid"), `${n}\n`)
      return `paid ${n}`
    })
})
const kid = Agent.make({ name: "kid", prompt: "You are a kid.", tools: [note] })
const ask = Tool.make("ask", {
  description: "Delegates",
  parameters,
  annotations: { resumable: true },
  execute: ({ n }) => Effect.map(Agent.delegate(kid, `kid ${n}`), ({ text }) => text).pipe(Effect.orDie)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [note, pay, ask],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const rounds: ReadonlyArray<ReadonlyArray<"note" | "pay" | "ask">> = [
  ["note", "note"],
  ["pay"],
  ["ask", "note"],
  ["pay"]
]

const script = TestChatModel.reactive(({ messages }) => {
  const [first] = messages
  const isKid = first !== undefined && messages.some((one) => one.role === "human" && Message.text(one) === "kid 20")
  const round = messages.filter(({ role }) => role === "ai").length
  const options = { chunkSize: 5, usage: { inputTokens: 7, outputTokens: 3 } }
  if (isKid) {
    return round === 0
      ? TestChatModel.calls([{ name: "note", arguments: { n: 900 } }], options)
      : TestChatModel.text("The kid is done.", options)
  }
  const names = rounds[round]
  const said = `This is round ${round}, and the words of it are many. `
  return names === undefined
    ? () =>
        Effect.gen(function* () {
          while (!existsSync(join(folder, "go"))) yield* Effect.sleep("10 millis")
          return TestChatModel.text("All of it is done. 🙂", { ...options, reasoning: "So it ends." })
        })
    : TestChatModel.calls(
        names.map((name, index) => ({ name, arguments: { n: round * 10 + index }, id: `call-${round}-${index}` })),
        { ...options, text: said, reasoning: `I think of ${round}.` }
      )
})

/** Tells one part of a turn each few milliseconds. */
const slow = (model: ChatModel.Service): ChatModel.Service => ({
  ...model,
  makeSession: Effect.map(model.makeSession, (session) => ({
    nextTurn: (request) => Stream.tap(Stream.rechunk(session.nextTurn(request), 1), () => Effect.sleep("4 millis"))
  }))
})
const model = Layer.effect(ChatModel.ChatModel, Effect.map(ChatModel.ChatModel, slow)).pipe(Layer.provide(script))

const file = join(folder, "threads.db")
const runs = Server.layer({ helper }, { takeOver: true }).pipe(
  Layer.provide([Storage.layerSql.pipe(Layer.provide(SqliteClient.layer({ file }))), model]),
  Layer.provideMerge(SqliteSessions.layer({ file }))
)
const auth = Server.loopback({ token: Redacted.make("token") })
const routes = Server.http({ protocols: ["aiSdk", "agUi", "openAi", "langGraph", "a2a"], page: page ?? false })
/** Prints the token of a link to the page. */
const link = Layer.effectDiscard(
  Effect.gen(function* () {
    const { issue } = yield* Server.Auth
    if (issue !== undefined) process.stdout.write(`#t=${Redacted.value(yield* issue)}\n`)
  })
)

const server = HttpRouter.serve(Layer.merge(routes, link).pipe(Layer.provide([runs, auth])), {
  disableLogger: true
}).pipe(Layer.provide(NodeHttpServer.layer(createServer, { port: Number(port), host: "127.0.0.1" })))

NodeRuntime.runMain(Layer.launch(server))
