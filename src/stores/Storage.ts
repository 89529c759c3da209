/**
 * The storage under all stores: tables of rows, in memory, in files, in SQLite or in Postgres.
 *
 * All stores stand on this one small service: provide a layer of it, and the layers of the stores that you use. Another
 * database is another `Table`.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { MemoryStore, Storage } from "effect-deepagents/stores"
 *
 * const memories = MemoryStore.layer.pipe(
 *   Layer.provide(Storage.layerFile({ folder: "memories" })),
 *   Layer.provide(NodeServices.layer)
 * )
 * ```
 */
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { SqlClient } from "effect/sql/SqlClient"
import { type Configured, fromConfigured } from "../core/configured.ts"
import * as Files from "./internal/file/table.ts"
import * as Memory from "./internal/memoryTable.ts"
import * as Sql from "./internal/sqlTable.ts"
import type { Table } from "./internal/table.ts"
import { make as failure, type StoreError } from "./StoreError.ts"

export type { Fault, Row, Scan, Table } from "./internal/table.ts"

/** Gives a table by its name. Tables of two names have nothing in common. */
export class Storage extends Context.Service<Storage, { readonly table: (name: string) => Table }>()(
  "effect-deepagents/Storage"
) {}

/** In memory, gone with the process: a storage of its own for each time that the layer is built. */
export const layerMemory: Layer.Layer<Storage> = Layer.effect(
  Storage,
  Effect.sync(() => {
    const tables = new Map<string, Table>()
    return {
      table: (name) => {
        const table = tables.get(name) ?? Memory.make()
        tables.set(name, table)
        return table
      }
    }
  })
)

/**
 * The directory of files, and whether a write is on the disk when it returns (default `false`); see {@link layerFile}.
 */
export interface FileOptions {
  readonly folder: string
  readonly fsync?: boolean | undefined
}

/**
 * In files, for one machine and any number of its processes: a folder for each space, with a file of JSON lines, which
 * nobody but their owner can read (modes 0700 and 0600). A write is there wholly or not at all; what was removed is
 * gone from the disk. A space is held in memory while it is used: for more than some thousand rows in one, take SQLite.
 *
 * `folder` is made if it is not there; it must be on a local disk. With `fsync`, what returned survives a power cut;
 * without (the default), the end of the process only.
 */
export const layerFile = (options: FileOptions): Layer.Layer<Storage, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Storage,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const fsync = options.fsync ?? false
      return { table: Files.make(fs, path, { folder: options.folder, fsync }) }
    })
  )

/** As {@link layerFile}, with options of which any may be a `Config`. */
export const layerFileConfig = (
  options: Configured<FileOptions>
): Layer.Layer<Storage, Config.ConfigError, FileSystem.FileSystem | Path.Path> =>
  Layer.unwrap(Effect.map(fromConfigured<FileOptions>(options), layerFile))

/**
 * In the database of a `SqlClient`, SQLite or Postgres: one table, `effect_deepagents_rows`, which is made when the
 * layer is built. Fails with `Unavailable` if it can't be.
 */
export const layerSql: Layer.Layer<Storage, StoreError, SqlClient> = Layer.effect(
  Storage,
  Effect.mapBoth(Sql.make, {
    onFailure: (fault) => failure("open", "effect_deepagents_rows", fault),
    onSuccess: (table) => ({ table })
  })
)
