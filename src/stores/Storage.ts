/**
 * The storage under all stores: tables of rows, in memory, in files, in SQLite or in Postgres.
 *
 * Provide one layer of this service, and the layers of the stores that you use. To support another database, implement
 * `Table`.
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
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { failure } from "./internal/failure.ts"
import * as Files from "./internal/file/table.ts"
import * as Memory from "./internal/memoryTable.ts"
import * as shapes from "./internal/shapes.ts"
import * as Sql from "./internal/sqlTable.ts"
import type { Table } from "./internal/table.ts"
import type { StoreError } from "./StoreError.ts"

export type { Table } from "./internal/table.ts"

/** Gives a table by its name. Two tables share nothing. */
export class Storage extends Context.Service<Storage, { readonly table: (name: string) => Table }>()(
  "effect-deepagents/Storage"
) {}

/** Keeps rows in memory. Each build of the layer has its own. */
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

/** The options of files. */
type FileOptions = {
  /** The directory of the files, on a local disk. It is made if it is missing. */
  readonly folder: string
  /** With `true`, a write that returned survives a power cut; by default, it survives the end of the process only. */
  readonly fsync?: boolean | undefined
}

const refuseLayerFile = makeLayerCheck("Storage.layerFile", shapes.storageLayerFile)

/**
 * Keeps rows in files, for any number of processes of one machine: a folder for each space, with a file of JSON lines
 * that nobody but the owner can read (modes 0700 and 0600). A write is stored whole or not at all, and removed rows are
 * erased from the disk. A space is held in memory while it is used: beyond some thousand rows in one, use SQLite.
 */
export const layerFile = (options: FileOptions): Layer.Layer<Storage, never, FileSystem.FileSystem | Path.Path> =>
  refuseLayerFile(options) ??
  Layer.effect(
    Storage,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const fsync = options.fsync ?? false
      return { table: Files.make(fs, path, { folder: options.folder, fsync }) }
    })
  )

/** Like {@link layerFile}. Each option may be a `Config`. */
export const layerFileConfig = (
  options: ConfigOptions<FileOptions>
): Layer.Layer<Storage, Config.ConfigError, FileSystem.FileSystem | Path.Path> =>
  Layer.unwrap(Effect.map(fromConfigured<FileOptions>(options), layerFile))

/**
 * Keeps rows in the database of a `SqlClient`, SQLite or Postgres. Building the layer makes the table
 * `effect_deepagents_rows`, or fails with `Unavailable`.
 */
export const layerSql: Layer.Layer<Storage, StoreError, SqlClient> = Layer.effect(
  Storage,
  Effect.mapBoth(Sql.make, {
    onFailure: (fault) => failure("open", "effect_deepagents_rows", fault),
    onSuccess: (table) => ({ table })
  })
)
