/**
 * The ledgers that are held to the conformance suite, each at a place of its own.
 */
import { join } from "node:path"
import { Effect, Layer } from "effect"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Ledger } from "effect-deepagents/stores"
import { LedgerConformance } from "effect-deepagents/testing/conformance"
import type { Place } from "../../sessions/children/stores.ts"
import { aPrefix, aSchema } from "../../sessions/places.ts"
import { onPostgres } from "../children/ledgerOnPostgres.ts"
import { onRedis } from "../children/ledgerOnRedis.ts"
import { folder } from "../places.ts"

export const memory: LedgerConformance.Subject<void, never, never> = {
  place: Effect.void,
  layer: () => Ledger.layerMemory,
  survives: LedgerConformance.absent("it is gone with the process")
}

export const sqlite = {
  place: Effect.map(folder, (path) => join(path, "ledger.db")),
  layer: (file: string) => Layer.orDie(Ledger.layerSql.pipe(Layer.provide(SqliteClient.layer({ file })))),
  survives: true as const
}

export const postgres = {
  place: Effect.orDie(aSchema),
  layer: (place: Place) => Layer.orDie(onPostgres(place)),
  survives: true as const
}

export const redis = {
  place: aPrefix,
  layer: (place: Place) => Layer.orDie(onRedis(place)),
  survives: true as const
}
