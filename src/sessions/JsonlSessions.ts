/**
 * Threads as files of JSON lines, one a thread, that a person can read, copy and search with `grep`.
 *
 * Every change is one line at the end of the thread's file. Several processes may use one folder, if it is on a local
 * disk: who comes second learns from the file that he did. A line that a crash cut off is left out, and reported as a
 * warning once, when the thread is read again; it was never acknowledged. A thread is held in memory while it is used,
 * and lists and searches read all of the folder: for more than some thousand threads, take SQLite.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
 *
 * const sessions = SessionStore.journal.pipe(
 *   Layer.provideMerge(JsonlSessions.layer({ folder: "sessions" })),
 *   Layer.provide(NodeServices.layer)
 * )
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import { type Configured, fromConfigured } from "../core/configured.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { unavailable } from "./internal/jsonl/log.ts"
import * as Tables from "./internal/jsonl/tables.ts"
import { make } from "./internal/store.ts"

/**
 * `folder` is made if it is not there. With `fsync`, an append is on the disk when it returns, and survives a power
 * cut; without (the default), it survives the end of the process only.
 */
export interface Options {
  readonly folder: string
  readonly fsync?: boolean | undefined
}

/** A store in a folder. A folder that can't be made fails with `Unavailable`. */
export const layer = (options: Options): Layer.Layer<SessionStore, SessionError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    SessionStore,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      yield* Effect.mapError(fs.makeDirectory(options.folder, { recursive: true, mode: 0o700 }), (error) =>
        failure("open", "", unavailable(error).reason, error)
      )
      return make(yield* Tables.make({ fs, path, folder: options.folder, fsync: options.fsync ?? false }))
    })
  )

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<SessionStore, SessionError | Config.ConfigError, FileSystem.FileSystem | Path.Path> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
