/**
 * SQL on an SQLite file: a client of `effect/sql` over `node:sqlite`.
 *
 * Whatever takes a `SqlClient` runs on it: sessions, stores, `effect/cluster`, `effect/eventlog`, migrations, queries
 * of your own. The file is in WAL mode: readers never wait for writers. Its lock is waited for up to ten seconds,
 * without stopping the process, so that any number of processes can share a file on a local disk. A file that is not
 * there is made, for its owner only (mode 0600).
 *
 * One statement runs at a time, and a transaction has the connection to itself; a transaction inside of another one is
 * a savepoint. A stream of rows outside of a transaction has a connection of its own, so that other statements can run
 * while it is read. Whole numbers that JavaScript's numbers can't hold are bigints; with `SqlClient.SafeIntegers`, all
 * are.
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
import { type Configured, fromConfigured } from "../core/configured.ts"
import { lendWay } from "./internal/sql/append.ts"
import * as Aside from "./internal/sqlite/aside.ts"
import { inMemory, open } from "./internal/sqlite/connection.ts"
import { readsFrom } from "./internal/sqlite/reads.ts"
import { writesTo } from "./internal/sqlite/writes.ts"

/**
 * `file` is made if it is not there; its folder is not. `":memory:"` is a database that is gone with its scope.
 * `synchronous` says what a power cut may take: with `"normal"` (the default), the transactions of the last moment,
 * each wholly; with `"full"`, nothing that was acknowledged. `transformQueryNames` and `transformResultNames` change
 * names of columns on their way, as with Effect's other clients.
 */
export interface Options {
  readonly file: string
  readonly synchronous?: "normal" | "full" | undefined
  readonly transformQueryNames?: ((name: string) => string) | undefined
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/** A client of one file. */
export interface Service extends SqlClient.SqlClient {
  readonly file: string
}

/** The client of an SQLite file, for what is of SQLite only. Everything else asks for `SqlClient`. */
export class SqliteClient extends Context.Service<SqliteClient, Service>()("effect-deepagents/SqliteClient") {}

/** A client that is closed with its scope. A file that can't be opened fails with its name, and what to do. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Service, SqlError, Scope.Scope | Reactivity.Reactivity> {
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
    // Only streams ask for a lease outside of a transaction; another connection can't see what is in memory.
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
    ...writesTo(connection.database, semaphore, connection.written, connection.lostPlace),
    reads: readsFrom(connection.database),
    aside
  }))
  return named
})

/** A client of a file, as `SqlClient` and as `SqliteClient`. */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient | SqliteClient, SqlError> =>
  Layer.provide(
    Layer.effectContext(
      Effect.map(make(options), (client) =>
        Context.add(Context.make(SqliteClient, client), SqlClient.SqlClient, client)
      )
    ),
    Reactivity.layer
  )

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<SqlClient.SqlClient | SqliteClient, SqlError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
