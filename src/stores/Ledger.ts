/**
 * Caps for persons, tenants and days that hold over all runs and processes: the ledger, in memory, SQLite or Postgres.
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

/** In memory, gone with the process: a ledger of its own for each time that the layer is built. */
export const layerMemory: Layer.Layer<Ledger> = Layer.sync(Ledger, () => make(Memory.make()))

/**
 * In the database of a `SqlClient`, SQLite or Postgres. Tables (`ledger_…`) are made when the layer is built; it fails
 * with `Unavailable` if they can't be. Any number of processes share them. It writes nothing inside of a transaction of the
 * same client, which could be rolled back: it fails with `Unavailable` there.
 */
export const layerSql: Layer.Layer<Ledger, LedgerError, SqlClient> = Layer.effect(
  Ledger,
  Effect.mapBoth(Sql.make, { onFailure: (fault) => failure("open", "", fault), onSuccess: make })
)
