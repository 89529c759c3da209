/** Stores that processes share. Each process loads the drivers of its own kind only: they are most of its start time. */
import { readFileSync } from "node:fs"
import type { SessionStore } from "effect-deepagents/sessions"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** The facts of a server for a process, in `server.json` of its folder. */
export interface Place {
  readonly url: string
  readonly name: string
}

const placeOf = (path: string): Place => {
  const place: Place = JSON.parse(readFileSync(`${path}/server.json`, "utf8"))
  return place
}

type Store<E> = Layer.Layer<SessionStore.SessionStore, E>

const later = <E>(load: () => Promise<Store<E>>): Store<never> => Layer.orDie(Layer.unwrap(Effect.promise(load)))

const layers: Record<string, (path: string) => Store<never>> = {
  sqlite: (path) =>
    later(async () => {
      const SqliteSessions = await import("effect-deepagents/sessions/SqliteSessions")
      return SqliteSessions.layer({ file: `${path}/sessions.db`, synchronous: "full" })
    }),
  jsonl: (path) =>
    later(async () => {
      const JsonlSessions = await import("effect-deepagents/sessions/JsonlSessions")
      const NodeServices = await import("@effect/platform-node/NodeServices")
      return JsonlSessions.layer({ folder: path, fsync: true }).pipe(Layer.provide(NodeServices.layer))
    }),
  postgres: (path) => later(async () => (await import("./postgres.ts")).onPostgres(placeOf(path))),
  redis: (path) => later(async () => (await import("./redis.ts")).onRedis(placeOf(path)))
}

/** A store that other processes can open, too: as safe as it can be. */
export const layer = (kind: string, path: string): Store<never> =>
  layers[kind]?.(path) ?? Layer.effectContext(Effect.die(`there is no store of the kind ${kind}`))
