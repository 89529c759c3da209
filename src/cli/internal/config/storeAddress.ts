/** Session stores by address: a file, a folder, a database, a server. */
import { existsSync, statSync } from "node:fs"
import { resolve } from "node:path"
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SessionStore } from "../../../core/SessionStore.ts"
import * as JsonlSessions from "../../../sessions/JsonlSessions.ts"
import * as RedisSessions from "../../../sessions/RedisSessions.ts"
import * as SqliteSessions from "../../../sessions/SqliteSessions.ts"
import * as SqlSessions from "../../../sessions/SqlSessions.ts"
import { Failure, wordsOf } from "../failure.ts"

/** A store, with its address for display. */
export interface Address {
  readonly name: string
  readonly layer: Layer.Layer<SessionStore, Failure, NodeServices>
}

const usage = (message: string) => new Failure({ exit: "usage", message })

const forms =
  "an SQLite file (threads.db), a folder of JSON lines (threads/), postgres://user:password@host/database or redis://host"

/** Removes the password from a text of a driver. */
const withoutSecrets = (url: URL, text: string): string => {
  const secrets = [url.href, url.password, decodeURIComponent(url.password)]
  return secrets.reduce((left, secret) => (secret === "" ? left : left.replaceAll(secret, "…")), text)
}

const nameOf = (url: URL): string => {
  const user = url.username === "" ? "" : `${url.username}@`
  return `${url.protocol}//${user}${url.host}${url.pathname}`
}

/** Adds the store to its failures, without the password. */
const failing =
  (show: (text: string) => string) =>
  <A, E extends { readonly message: string }, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, Failure, R> =>
    Layer.catch(layer, (error) =>
      Layer.effectContext(Effect.fail(new Failure({ exit: "failed", message: show(wordsOf(error)) })))
    )

/** Loads the driver of a database, an optional package. */
const driver = <Module>(name: string, load: () => Promise<Module>): Effect.Effect<Module, Failure> =>
  Effect.tryPromise({
    try: load,
    catch: () => new Failure({ exit: "failed", message: `The package ${name} is missing: npm install ${name}` })
  })

/** The client of a Postgres. */
const postgresOf = (url: URL) =>
  Layer.unwrap(
    Effect.map(
      driver("@effect/sql-pg", () => import("@effect/sql-pg/PgClient")),
      (PgClient) => PgClient.layer({ url: Redacted.make(url.href) })
    )
  )

/** Adds the address of a server to its failures. */
const namedBy = (url: URL) => failing((text) => `${nameOf(url)}: ${withoutSecrets(url, text)}`)

/** A Postgres that servers share. */
export interface Database {
  readonly name: string
  readonly client: Layer.Layer<SqlClient, Failure>
  /** Names the database in the failures of a layer, without the password. */
  readonly named: ReturnType<typeof failing>
}

/** Reads the database of the environment, which has the sessions instead of the data folder. */
export const readDatabase: Effect.Effect<Database | undefined, Failure> = Effect.suspend(() => {
  const text = process.env["DEEPAGENTS_DATABASE_URL"] ?? ""
  if (text === "") return Effect.undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== "postgres:" && url?.protocol !== "postgresql:") {
    return Effect.fail(
      usage("DEEPAGENTS_DATABASE_URL: expected an address, such as postgres://user:password@host/database.")
    )
  }
  const named = namedBy(url)
  return Effect.succeed({ name: nameOf(url), client: named(postgresOf(url)), named })
})

const ofServer = (url: URL): Address | undefined => {
  const name = nameOf(url)
  const named = namedBy(url)
  switch (url.protocol) {
    case "postgres:":
    case "postgresql:":
      return { name, layer: named(Layer.provide(SqlSessions.layer, postgresOf(url))) }
    case "redis:":
    case "rediss:": {
      const load = driver("redis", () => import("@effect/platform-node/NodeRedis"))
      const client = Effect.map(load, (NodeRedis) => NodeRedis.layer({ url: url.href }))
      return { name, layer: named(Layer.provide(RedisSessions.layer(), Layer.unwrap(client))) }
    }
    default:
      return undefined
  }
}

const local = failing((text) => text)

/** Reads an address. A source must exist; a target is created. */
export const addressOf = (text: string, role: "source" | "target"): Effect.Effect<Address, Failure> =>
  Effect.suspend(() => {
    if (/^[a-z]+:\/\//iu.test(text)) {
      const server = URL.canParse(text) ? ofServer(new URL(text)) : undefined
      return server === undefined
        ? Effect.fail(usage(`This is not the address of a store (it is not repeated here): give ${forms}`))
        : Effect.succeed(server)
    }
    const path = resolve(text)
    const isThere = existsSync(path)
    if (!isThere && role === "source") {
      return Effect.fail(usage(`There is no store at ${path}: give ${forms}`))
    }
    const isFolder = isThere ? statSync(path).isDirectory() : /[/\\]$/u.test(text)
    if (!isFolder && !isThere && !/\.(?:db|sqlite|sqlite3)$/u.test(path)) {
      return Effect.fail(
        usage(`${path} does not exist: name a file with .db at the end for SQLite, or a folder with / at the end`)
      )
    }
    return Effect.succeed<Address>({
      name: path,
      layer: isFolder ? local(JsonlSessions.layer({ folder: path })) : local(SqliteSessions.layer({ file: path }))
    })
  })
