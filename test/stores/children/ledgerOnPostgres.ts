import * as PgClient from "@effect/sql-pg/PgClient"
import { Ledger } from "effect-deepagents/stores"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Place } from "../../sessions/children/stores.ts"

export const onPostgres = ({ name, url }: Place, maxConnections = 4) =>
  Ledger.layerSql.pipe(
    Layer.provide(PgClient.layer({ url: Redacted.make(url), maxConnections, startupParameters: { search_path: name } }))
  )
