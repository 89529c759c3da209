/**
 * Threads in one SQLite file: the store to begin with, for one machine and any number of its processes.
 *
 * It is {@link SqlSessions} on a {@link SqliteClient} of its own. An append is one transaction, durable when it
 * returns: it survives `kill -9`. What survives a power cut depends on `synchronous`: with `"normal"`, the appends of
 * the last moment may be missing, all or none of each; with `"full"`, nothing that was acknowledged is. Put the file on
 * a local disk: network file systems have no reliable locks.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { SessionStore } from "effect-deepagents/sessions"
 * import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 * const sessions = SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: "sessions.db" })))
 *
 * const program = Agent.run(agent, "Hello", { threadId: "ada" }).pipe(Effect.provide(sessions))
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Configured, fromConfigured } from "../core/configured.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import type { SessionStore } from "../core/SessionStore.ts"
import { toFault } from "./internal/sql/client.ts"
import * as SqliteClient from "./SqliteClient.ts"
import * as SqlSessions from "./SqlSessions.ts"

/**
 * `file` is made if it is not there; its folder is not. `synchronous` (default `"normal"`) says what a power cut may
 * take.
 */
export interface Options {
  readonly file: string
  readonly synchronous?: "normal" | "full" | undefined
}

/** A store in a file. A file that can't be opened fails with `Unavailable` or `Corrupt`. */
export const layer = (options: Options): Layer.Layer<SessionStore, SessionError> =>
  Layer.provide(
    SqlSessions.layer,
    Layer.catch(SqliteClient.layer(options), (error) => {
      const { cause, reason } = toFault(error)
      return Layer.effectContext(Effect.fail(failure("open", "", reason, cause)))
    })
  )

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<SessionStore, SessionError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
