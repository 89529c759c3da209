/**
 * The ledger in memory, SQLite or Postgres: caps for persons, tenants and days over all runs and processes.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Ledger } from "effect-deepagents/stores"
 *
 * const perDay: Ledger.Cap = { account: "tenant:acme", window: "day", max: { tokens: 1_000_000, cost: 20 } }
 *
 * const program = Effect.gen(function* () {
 *   const ledger = yield* Ledger.Ledger
 *   const reservation = yield* ledger.reserve(perDay, { tokens: 5_000, cost: 0.1 })
 *   // … work …
 *   yield* reservation.settle({ tokens: 3_210, cost: 0.06 })
 *   return yield* ledger.spent("tenant:acme", "day")
 * }).pipe(Effect.scoped, Effect.provide(Ledger.layerMemory))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlClient } from "effect/sql/SqlClient"
import { Ledger, type LedgerError } from "../core/Ledger.ts"
import { failure, make } from "./internal/ledger/make.ts"
import * as Memory from "./internal/ledger/memory.ts"
import * as Sql from "./internal/ledger/sql.ts"

export * from "../core/Ledger.ts"

/** Keeps a ledger in memory. Each build of the layer has its own. */
export const layerMemory: Layer.Layer<Ledger> = Layer.sync(Ledger, () => make(Memory.make()))

/**
 * Keeps a ledger in the database of a `SqlClient`, SQLite or Postgres, for any number of processes. Building the layer
 * makes its tables (`ledger_…`), or fails with `Unavailable`. Writes inside of a transaction of the same client fail with
 * `Unavailable`, because a rollback would undo them.
 */
export const layerSql: Layer.Layer<Ledger, LedgerError, SqlClient> = Layer.effect(
  Ledger,
  Effect.mapBoth(Sql.make, { onFailure: (fault) => failure("open", "", fault), onSuccess: make })
)
