/**
 * Threads in a Postgres or SQLite database, by the `SqlClient` that you provide.
 *
 * An append is one statement in one transaction. Building the layer makes the tables (`session_…`), and migrates them for a
 * later version of the library; any number of processes may do so at once.
 *
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { Config, Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { SessionStore } from "effect-deepagents/sessions"
 * import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 * const sessions = SessionStore.journal.pipe(
 *   Layer.provideMerge(SqlSessions.layer),
 *   Layer.provide(PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") }))
 * )
 *
 * const program = Agent.run(agent, "Hello", { threadId: "ada" }).pipe(Effect.provide(sessions))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { isReadOnly as isReadOnlyIn, migrate } from "./internal/sql/migrate.ts"
import * as Tables from "./internal/sql/tables.ts"
import { make } from "./internal/store.ts"

/**
 * Keeps threads in the client's database. Fails with `Unavailable` if it can't make the tables, and with `Corrupt` if a
 * later version of the library made them.
 */
export const layer: Layer.Layer<SessionStore, SessionError, SqlClient> = Layer.effect(
  SessionStore,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* Effect.mapError(migrate(sql), ({ cause, reason }) => failure("open", "", reason, cause))
    const isReadOnly = yield* Effect.mapError(isReadOnlyIn(sql), ({ cause, reason }) =>
      failure("open", "", reason, cause)
    )
    return make(Tables.make(sql, isReadOnly))
  })
)
