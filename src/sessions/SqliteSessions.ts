/**
 * Threads in one SQLite file: the store to begin with, for one machine and any number of its processes.
 *
 * It is {@link SqlSessions} on a {@link SqliteClient} of its own. An append is one transaction, and survives `kill -9` when
 * it returned. `synchronous` decides about a power cut. Put the file on a local disk: network file systems have no reliable
 * locks.
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
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import type { SessionStore } from "../core/SessionStore.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import * as shapes from "./internal/shapes.ts"
import { toFault } from "./internal/sql/client.ts"
import * as SqliteClient from "./SqliteClient.ts"
import * as SqlSessions from "./SqlSessions.ts"

/** The options of this module. */
export interface Options {
  /** The file. It is made if it is missing; its folder must exist. */
  readonly file: string
  /** With `"full"`, a power cut loses no acknowledged append; with `"normal"` (the default), the last ones may be lost. */
  readonly synchronous?: "normal" | "full" | undefined
}

const refuseLayer = makeLayerCheck("SqliteSessions.layer", shapes.sqliteSessionsLayer)

/** Keeps threads in a file. Fails with `Unavailable` or `Corrupt` if it can't open the file. */
export const layer = (options: Options): Layer.Layer<SessionStore, SessionError> =>
  refuseLayer(options) ??
  Layer.provide(
    SqlSessions.layer,
    Layer.catch(SqliteClient.layer(options), (error) => {
      const { cause, reason } = toFault(error)
      return Layer.effectContext(Effect.fail(failure("open", "", reason, cause)))
    })
  )

/** Like {@link layer}. Each option may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<SessionStore, SessionError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
