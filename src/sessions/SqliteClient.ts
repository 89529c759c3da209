/**
 * SQL on an SQLite file: a client of `effect/sql` over `node:sqlite`.
 *
 * It works wherever a `SqlClient` does: sessions, stores, `effect/cluster`, `effect/eventlog`, migrations, your own queries.
 * The file is in WAL mode: readers never wait for writers. A statement waits for the file's lock up to ten seconds without
 * blocking the process, so any number of processes can share a file on a local disk. A new file is readable by its owner
 * only (mode 0600).
 *
 * One statement runs at a time. A transaction has the connection to itself, and a nested one is a savepoint. A stream of
 * rows outside of a transaction has its own connection, so that other statements run meanwhile. Integers beyond the safe
 * range are bigints; with `SqlClient.SafeIntegers`, all integers are.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { SqlClient } from "effect/sql/SqlClient"
 * import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
 *
 * const program = Effect.gen(function* () {
 *   const sql = yield* SqlClient
 *   yield* sql`CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL)`
 *   yield* sql`INSERT INTO notes ${sql.insert({ body: "Hello" })}`
 *   return yield* sql<{ id: number; body: string }>`SELECT id, body FROM notes`
 * }).pipe(Effect.provide(SqliteClient.layer({ file: "notes.db" })))
 * ```
 */
import { resolve } from "node:path"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import * as Aside from "../support/store/sqliteThread.ts"
import * as shapes from "./internal/shapes.ts"
import { lendWay } from "./internal/sql/append.ts"
import { inMemory, open } from "./internal/sqlite/connection.ts"
import { readsFrom } from "./internal/sqlite/reads.ts"
import { writesTo } from "./internal/sqlite/writes.ts"

/** The options of this module. */
export interface Options {
  /** The file. It is made if it is missing; its folder must exist. `":memory:"` is a database that ends with its scope. */
  readonly file: string
  /**
   * With `"full"`, a power cut loses no acknowledged transaction; with `"normal"` (the default), the last ones may be lost,
   * each completely.
   */
  readonly synchronous?: "normal" | "full" | undefined
  /** Transforms the names of columns in statements, as in Effect's other clients. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Transforms the names of columns in results. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/** The operations of the service. */
export interface Service extends SqlClient.SqlClient {
  readonly file: string
}

/** The client of an SQLite file, for code that works with SQLite only. Other code uses `SqlClient`. */
export class SqliteClient extends Context.Service<SqliteClient, Service>()("effect-deepagents/SqliteClient") {}

const refuse = makeEffectCheck("SqliteClient", shapes.sqliteClientLayer)

/** Opens a client until its scope closes. The failure to open names the file, and says what to do. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Service, SqlError, Scope.Scope | Reactivity.Reactivity> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { file, synchronous = "normal" } = options
  const connection = yield* open(file, synchronous)
  const semaphore = yield* Semaphore.make(1)
  const lent = SqlClient.makeSqliteAcquirers({
    connection: Effect.succeed(connection),
    semaphore,
    isTransaction: (lease) => lease.isTransaction()
  })
  const client = yield* SqlClient.make({
    ...lent,
    // Only streams use it, outside of transactions. A second connection can't see a database in memory.
    acquirer: file === inMemory ? lent.acquirer : open(file, synchronous),
    compiler: Statement.makeCompilerSqlite(options.transformQueryNames),
    driver: "sqlite",
    spanAttributes: [["db.system.name", "sqlite"]],
    beginTransaction: "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    ...(options.transformResultNames === undefined
      ? {}
      : { transformRows: Statement.defaultTransforms(options.transformResultNames).array })
  })
  const named = Object.assign(client, { file })
  const aside = file === inMemory ? undefined : yield* Aside.make(resolve(file))
  lendWay(named, () => ({
    ...writesTo(connection.database, semaphore, connection.noteWrite, connection.lostPlace),
    reads: readsFrom(connection.database),
    aside
  }))
  return named
})

/** Provides a client of a file as `SqlClient` and as `SqliteClient`. */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient | SqliteClient, SqlError> =>
  Layer.provide(
    Layer.effectContext(
      Effect.map(make(options), (client) =>
        Context.add(Context.make(SqliteClient, client), SqlClient.SqlClient, client)
      )
    ),
    Reactivity.layer
  )

/** Like {@link layer}. Each option may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<SqlClient.SqlClient | SqliteClient, SqlError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
