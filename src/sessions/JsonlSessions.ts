/**
 * Threads as files of JSON lines, one a thread, that a person can read, copy and search with `grep`.
 *
 * Every change is one line at the end of the thread's file. Processes of one machine may share a folder: a process learns
 * from the file whether another one was first. A line that a crash cut off was never acknowledged; it is left out, and
 * reported once as a warning. A thread is held in memory while it is used. Lists and searches read the whole folder: beyond
 * some thousand threads, use SQLite.
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
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { unavailable } from "./internal/jsonl/log.ts"
import * as Tables from "./internal/jsonl/tables.ts"
import * as shapes from "./internal/shapes.ts"
import { make } from "./internal/store.ts"

/** The options of this module. */
export interface Options {
  /** The directory of the files, on a local disk. It is made if it is missing. */
  readonly folder: string
  /** With `true`, an append that returned survives a power cut; by default, it survives the end of the process only. */
  readonly fsync?: boolean | undefined
}

const refuseLayer = makeLayerCheck("JsonlSessions.layer", shapes.jsonlSessionsLayer)

/** Keeps threads in a folder. Fails with `Unavailable` if it can't make the folder. */
export const layer = (options: Options): Layer.Layer<SessionStore, SessionError, FileSystem.FileSystem | Path.Path> =>
  refuseLayer(options) ??
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

/** Like {@link layer}. Each option may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<SessionStore, SessionError | Config.ConfigError, FileSystem.FileSystem | Path.Path> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
