/**
 * An approval that is answered from another process: the run that asks ends, and its process with it; whoever is asked
 * decides when they like, by the thread alone.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer, Schema } from "effect"
import { Agent, Approval, Checkpoint, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { ChildProcess } from "effect/process"

const [role, given = ""] = process.argv.slice(2)

const makeAgent = (folder: string) =>
  Agent.make({
    name: "janitor",
    prompt: "You keep the repository tidy.",
    tools: [
      Tool.make("delete_branch", {
        description: "Deletes a branch for good",
        parameters: { name: Schema.String },
        annotations: { destructive: true },
        execute: ({ name }) =>
          FileSystem.FileSystem.use((fs) =>
            Effect.as(fs.writeFileString(`${folder}/deleted.txt`, `${name}\n`, { flag: "a" }), `${name} is gone`)
          )
      })
    ],
    middleware: [HumanInTheLoop.make({ destructive: true })]
  })

const sessions = (folder: string) =>
  SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))

/** It asks for two branches to be deleted, and ends. */
const child = Effect.fnUntraced(function* (folder: string) {
  const { stopReason } = yield* Agent.run(makeAgent(folder), "Tidy up", { threadId: "cleaning" })
  yield* Console.log(`The first process ends: ${stopReason}.`)
})
const wish = TestChatModel.calls([
  { name: "delete_branch", arguments: { name: "main" } },
  { name: "delete_branch", arguments: { name: "typo-fix" } }
])

/** Another process, another day: it finds what waits, decides, and has the run go on. */
const decide = Effect.fnUntraced(function* (folder: string) {
  const store = yield* SessionStore.SessionStore
  const [thread] = (yield* store.list()).items
  const threadId = thread?.threadId ?? ""
  const checkpoint = yield* SessionStore.checkpoint(threadId)
  const pending = checkpoint === undefined ? [] : yield* Checkpoint.pending(checkpoint)
  const decisions = pending.map((request) =>
    request.arguments["name"] === "main" ? Approval.reject(request, "never main") : Approval.approve(request)
  )
  for (const { toolName } of pending) yield* Console.log(`In ${JSON.stringify(threadId)}, ${toolName} waits.`)
  const { stopReason, text } = yield* Agent.resume(makeAgent(folder), { threadId, decisions })
  yield* Console.log(`It went on: ${text}`)
  return { asked: pending.length, stopReason }
})

const parent = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  const args = [...process.execArgv, import.meta.filename, "child", folder]
  const other = yield* ChildProcess.make(process.execPath, args, { stdout: "inherit", stderr: "inherit" })
  assert.equal(yield* other.exitCode, 0)
  assert.equal(yield* fs.exists(`${folder}/deleted.txt`), false)

  const script = TestChatModel.script(["typo-fix is deleted. I left main alone."])
  const outcome = yield* Effect.provide(decide(folder), [sessions(folder), script])
  assert.deepEqual(outcome, { asked: 2, stopReason: "completed" })
  assert.equal(yield* fs.readFileString(`${folder}/deleted.txt`), "typo-fix\n")
})

const program =
  role === "child" ? Effect.provide(child(given), [sessions(given), TestChatModel.script([wish])]) : parent
NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
