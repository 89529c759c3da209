/** A worker on the database of DATABASE_URL. Add a job by: INSERT INTO jobs (input) VALUES ('…') */
import { NodeRuntime } from "@effect/platform-node"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Config, Console, Effect, Layer } from "effect"
import { ChatModels } from "effect-deepagents/models"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { work } from "./worker.ts"

const model = Layer.unwrap(
  Effect.map(Config.String("MODEL").pipe(Config.withDefault("anthropic:claude-sonnet-5-5")), (spec) =>
    ChatModels.resolve(spec)
  )
)

const database = PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })
const sessions = SessionStore.journal.pipe(Layer.provideMerge(SqlSessions.layer))

const program = work.pipe(
  Effect.provide(Layer.mergeAll(sessions, model).pipe(Layer.provideMerge(database))),
  Effect.tapError((error) => Console.error(error.message))
)

NodeRuntime.runMain(program, { disableErrorReporting: true })
