/**
 * A form that is filled in in another process: the model asks two questions, its process ends, and a day later a form
 * is made from the request alone.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer } from "effect"
import { Agent, Approval, Checkpoint, Json } from "effect-deepagents"
import { AskUser } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { ChildProcess } from "effect/process"

const [role, given = ""] = process.argv.slice(2)

const planner = Agent.make({ name: "planner", prompt: "You plan trips.", middleware: [AskUser.make()] })

const sessions = (folder: string) =>
  SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))

const questions = TestChatModel.calls([
  {
    name: "ask_user",
    arguments: {
      questions: [
        { id: "seat", label: "Which seat?", kind: "one", options: ["window", "aisle"] },
        { id: "extras", label: "Which extras?", kind: "many", options: ["meal", "bag"], required: false }
      ]
    }
  }
])

/** It asks, and ends. */
const child = Effect.gen(function* () {
  const { stopReason } = yield* Agent.run(planner, "Book me to Oslo", { threadId: "trip" })
  yield* Console.log(`The first process ends: ${stopReason}.`)
})

/** The fields of a form, as a page or a terminal would draw them from the JSON Schema of the answer. */
const fieldsOf = ({ answer }: Approval.Request): ReadonlyArray<string> => {
  const properties = answer?.["properties"]
  return Json.isObject(properties)
    ? Object.entries(properties).map(([id, field]) => `${id}: ${Json.isObject(field) ? Json.stringify(field) : ""}`)
    : []
}

/** Another process, another day: it draws the form, is given an answer that does not fit, and then one that does. */
const fillIn = Effect.gen(function* () {
  const checkpoint = yield* SessionStore.checkpoint("trip")
  const [request] = checkpoint === undefined ? [] : yield* Checkpoint.pending(checkpoint)
  assert(request !== undefined)
  for (const field of fieldsOf(request)) yield* Console.log(field)
  const answerWith = (answer: Json.Json) =>
    Agent.resume(planner, { threadId: "trip", decisions: [Approval.respond(request, answer)] })
  const wrong = yield* Effect.flip(answerWith({ seat: "roof" }))
  yield* Console.log(wrong.message)
  return yield* answerWith({ seat: "aisle", extras: ["bag"] })
})

const parent = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  const args = [...process.execArgv, import.meta.filename, "child", folder]
  const other = yield* ChildProcess.make(process.execPath, args, { stdout: "inherit", stderr: "inherit" })
  assert.equal(yield* other.exitCode, 0)
  const script = TestChatModel.script(["You sit on the aisle, with a bag."])
  const { stopReason, text } = yield* Effect.provide(fillIn, [sessions(folder), script])
  assert.equal(stopReason, "completed")
  yield* Console.log(text)
})

const program = role === "child" ? Effect.provide(child, [sessions(given), TestChatModel.script([questions])]) : parent
NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
