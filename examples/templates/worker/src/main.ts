/** Works on the jobs of the table. `npm start -- "A long text."` adds a job first; so does any INSERT INTO jobs (input). */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Stdio } from "effect"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { Printer } from "effect-deepagents/view"
import { database } from "./database.ts"
import { model } from "./model.ts"
import { add, prepare, work } from "./worker.ts"

const sessions = SessionStore.journal.pipe(Layer.provideMerge(SqlSessions.layer))

const program = Effect.gen(function* () {
  yield* prepare
  for (const text of yield* (yield* Stdio.Stdio).args) yield* add(text)
  yield* work
}).pipe(
  Effect.provide(Layer.mergeAll(sessions, model).pipe(Layer.provideMerge(database))),
  Effect.provide(NodeServices.layer),
  Printer.orExit
)

NodeRuntime.runMain(program)
