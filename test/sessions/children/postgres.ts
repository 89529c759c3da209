import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Place } from "./stores.ts"

export const onPostgres = ({ name, url }: Place, maxConnections = 4) =>
  SqlSessions.layer.pipe(
    Layer.provide(PgClient.layer({ url: Redacted.make(url), maxConnections, startupParameters: { search_path: name } }))
  )
