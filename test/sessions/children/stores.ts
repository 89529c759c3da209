import { readFileSync } from "node:fs"
import { NodeRedis, NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { JsonlSessions, type SessionStore } from "effect-deepagents/sessions"
import * as RedisSessions from "effect-deepagents/sessions/RedisSessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"

/** What a process must know of a server: it is in `server.json` of its folder. */
export interface Place {
  readonly url: string
  readonly name: string
}

export const onPostgres = ({ name, url }: Place, maxConnections = 4) =>
  SqlSessions.layer.pipe(
    Layer.provide(PgClient.layer({ url: Redacted.make(url), maxConnections, startupParameters: { search_path: name } }))
  )

export const onRedis = ({ name, url }: Place) =>
  RedisSessions.layer({ prefix: name }).pipe(Layer.provide(NodeRedis.layer({ url })))

const placeOf = (path: string): Place => {
  const place: Place = JSON.parse(readFileSync(`${path}/server.json`, "utf8"))
  return place
}

const layers: Record<string, (path: string) => Layer.Layer<SessionStore.SessionStore>> = {
  sqlite: (path) => Layer.orDie(SqliteSessions.layer({ file: `${path}/sessions.db`, synchronous: "full" })),
  jsonl: (path) =>
    JsonlSessions.layer({ folder: path, fsync: true }).pipe(Layer.provide(NodeServices.layer), Layer.orDie),
  postgres: (path) => Layer.orDie(onPostgres(placeOf(path))),
  redis: (path) => Layer.orDie(onRedis(placeOf(path)))
}

/** A store that other processes can open, too: as safe as it can be. */
export const layer = (kind: string, path: string): Layer.Layer<SessionStore.SessionStore> =>
  layers[kind]?.(path) ?? Layer.effectContext(Effect.die(`there is no store of the kind ${kind}`))
