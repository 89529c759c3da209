/**
 * A program of ten steps that survives `kill -9`: its process dies in the sixth, and another one goes on there. What was
 * done is not done again.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer, Schema, Stream } from "effect"
import { Agent } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { ChildProcess } from "effect/process"

const [role, given = ""] = process.argv.slice(2)

const migration = (folder: string) =>
  Agent.program({
    name: "migration",
    output: Schema.Struct({ rows: Schema.Finite }),
    run: Effect.fnUntraced(function* () {
      const fs = yield* FileSystem.FileSystem
      let rows = 0
      for (let table = 1; table <= 10; table++) {
        const move = Effect.gen(function* () {
          if (role === "child" && table === 6) {
            yield* Console.log("in the sixth step")
            yield* Effect.never
          }
          yield* fs.writeFileString(`${folder}/moved.txt`, `table ${table}\n`, { flag: "a" })
          return table * 100
        })
        rows += yield* Agent.step(`move table ${table}`, move, Schema.Finite)
      }
      return { rows }
    })
  })

const sessions = (folder: string) =>
  SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))

const child = (folder: string) =>
  Agent.run(migration(folder), "Move all tables", { threadId: "migration" }).pipe(Effect.provide(sessions(folder)))

const parent = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  const other = yield* ChildProcess.make(
    process.execPath,
    [...process.execArgv, import.meta.filename, "child", folder],
    { stderr: "inherit" }
  )
  yield* other.stdout.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.takeUntil((line) => line === "in the sixth step"),
    Stream.runDrain
  )
  yield* other.kill({ killSignal: "SIGKILL" })
  yield* Console.log("The process is gone, in its sixth step.")

  const { output } = yield* Agent.resume(migration(folder), { threadId: "migration" }).pipe(
    Effect.provide(sessions(folder))
  )
  yield* Console.log(`${output.rows} rows are moved.`)
  assert.equal(output.rows, 5_500)
  const moved = (yield* fs.readFileString(`${folder}/moved.txt`)).trim().split("\n")
  assert.deepEqual(
    moved,
    Array.from({ length: 10 }, (_, index) => `table ${index + 1}`)
  )
})

const program = role === "child" ? child(given) : parent
NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
