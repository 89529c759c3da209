/**
 * The stores that are held to the conformance suite, each at a place of its own.
 */
import { execFileSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Effect, FileSystem, Layer, PlatformError, Redacted } from "effect"
import { JsonlSessions, MemorySessions } from "effect-deepagents/sessions"
import * as RedisSessions from "effect-deepagents/sessions/RedisSessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { SessionConformance } from "effect-deepagents/testing/conformance"
import { Redis } from "effect/persistence"
import { SqlClient } from "effect/sql"
import { postgres as postgresServer } from "../servers/postgres.ts"
import { redis as redisServer } from "../servers/redis.ts"
import { onPostgres } from "./children/postgres.ts"
import type { Place } from "./children/stores.ts"

const { absent } = SessionConformance

export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "sessions-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const memory: SessionConformance.Subject<void, never, never> = {
  place: Effect.void,
  layer: () => MemorySessions.layer,
  survives: absent("it is gone with the process"),
  fillDisk: absent("there is no disk")
}

export const sqlite = {
  place: Effect.map(folder, (path) => join(path, "sessions.db")),
  layer: (file: string) => SqliteSessions.layer({ file }),
  survives: true as const,
  fillDisk: absent("it takes the connection: see the full disk")
}

/** A client of SQLite that is not ours, as far as anybody can see. */
const foreign = Layer.effect(
  SqlClient.SqlClient,
  Effect.map(
    SqlClient.SqlClient,
    (sql) => Object.assign((...args: Parameters<typeof sql>) => sql(...args), sql) as SqlClient.SqlClient
  )
)

export const foreignSqlite = {
  place: Effect.map(folder, (path) => join(path, "sessions.db")),
  layer: (file: string) =>
    SqlSessions.layer.pipe(Layer.provide(foreign), Layer.provide(Layer.orDie(SqliteClient.layer({ file })))),
  survives: true as const,
  fillDisk: absent("it takes the connection: see the full disk")
}

interface Small {
  readonly file: string
  sql: SqlClient.SqlClient | undefined
}

/** The store as the layer makes it, on a connection that can be told to have no more pages. */
export const sqliteOnSmallDisk = {
  place: Effect.map(folder, (path): Small => ({ file: join(path, "sessions.db"), sql: undefined })),
  layer: (place: Small) =>
    SqlSessions.layer.pipe(
      Layer.provide(
        Layer.effectDiscard(SqlClient.SqlClient.use((sql) => Effect.sync(() => void (place.sql = sql)))).pipe(
          Layer.provideMerge(Layer.orDie(SqliteClient.layer({ file: place.file, synchronous: "full" })))
        )
      ),
      Layer.orDie
    ),
  survives: true as const,
  fillDisk: ({ sql }: Small) =>
    Effect.gen(function* () {
      if (sql === undefined) return
      const [row] = yield* sql<{ page_count: number }>`PRAGMA page_count`
      yield* sql.unsafe(`PRAGMA max_page_count = ${(row?.page_count ?? 0) + 2}`)
    }).pipe(Effect.orDie)
}

/** A disk with so many bytes left: a longer write is written in part. */
export interface Disk {
  left: number
}

/** A file system on such a disk. */
const onDisk = (disk: Disk) =>
  Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => ({
      ...fs,
      open: (path: string, options?: Parameters<typeof fs.open>[1]) =>
        Effect.map(fs.open(path, options), (file) => ({
          ...file,
          [Symbol.iterator]: undefined,
          stat: file.stat,
          sync: file.sync,
          readAlloc: file.readAlloc.bind(file),
          writeAll: (bytes: Uint8Array) => {
            const fits = bytes.subarray(0, disk.left)
            disk.left -= fits.length
            const full = PlatformError.systemError({
              _tag: "Unknown",
              module: "FileSystem",
              method: "writeAll",
              description: "ENOSPC: no space left on device"
            })
            return Effect.andThen(
              fits.length > 0 ? file.writeAll(fits) : Effect.void,
              fits.length < bytes.length ? Effect.fail(full) : Effect.void
            )
          }
        }))
    }))
  )

export const jsonl = {
  place: Effect.map(folder, (path) => ({ folder: path, disk: { left: Number.POSITIVE_INFINITY } })),
  layer: (place: { readonly folder: string; readonly disk: Disk }) =>
    Layer.unwrap(
      Effect.sync(() => {
        place.disk.left = Number.POSITIVE_INFINITY
        return JsonlSessions.layer({ folder: place.folder })
      })
    ).pipe(Layer.provide(onDisk(place.disk)), Layer.provide(NodeServices.layer)),
  survives: true as const,
  fillDisk: (place: { readonly folder: string; readonly disk: Disk }) =>
    Effect.sync(() => {
      place.disk.left = 1000
    })
}

/** The URL of a Postgres server. */
export class Postgres extends Context.Service<Postgres, string>()("test/Postgres") {
  static readonly layer = Layer.effect(Postgres, postgresServer)
}

let schemas = 0

/** A schema of its own. */
export const aSchema = Effect.gen(function* () {
  const url = yield* Postgres
  const name = `s${process.pid}_${schemas++}`
  yield* Effect.provide(
    SqlClient.SqlClient.use((sql) => sql`CREATE SCHEMA ${sql(name)}`),
    PgClient.layer({ url: Redacted.make(url) })
  )
  const place: Place = { url, name }
  return place
})

/** Tables in a schema of their own. */
export const postgres = {
  place: Effect.orDie(aSchema),
  layer: (place: Place) => Layer.orDie(onPostgres(place)),
  survives: true as const,
  fillDisk: absent("the server has the disk of the machine: see the small disk")
}

const owner = () => Number(execFileSync("id", ["-u", "postgres"]).toString())

/** Why no small disk can be had, if so: it takes a mount. */
export const noSmallDisk = process.getuid?.() === 0 ? undefined : "only root can mount a small disk"

/** Tables on a disk of 24 MB of their own, in a tablespace. */
export const postgresOnSmallDisk = {
  place: Effect.gen(function* () {
    const { name, url } = yield* aSchema
    const server = PgClient.layer({ url: Redacted.make(url) })
    const run = (statement: string) =>
      SqlClient.SqlClient.use((sql) => sql.unsafe(statement).unprepared).pipe(Effect.provide(server), Effect.orDie)
    const disk = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const path = mkdtempSync(join(tmpdir(), "small-disk-"))
        execFileSync("mount", ["-t", "tmpfs", "-o", `size=24m,uid=${owner()},mode=700`, "tmpfs", path])
        return path
      }),
      (path) =>
        Effect.sync(() => {
          execFileSync("umount", ["-l", path])
          rmSync(path, { recursive: true, force: true })
        })
    )
    yield* Effect.acquireRelease(run(`CREATE TABLESPACE ${name} LOCATION '${disk}'`), () =>
      Effect.andThen(run(`DROP SCHEMA ${name} CASCADE`), run(`DROP TABLESPACE ${name}`))
    )
    return { name, url, disk }
  }).pipe(Effect.orDie),
  layer: ({ disk, name, url }: Place & { readonly disk: string }) => {
    const startupParameters = { search_path: name, default_tablespace: name }
    return Layer.effectDiscard(Effect.sync(() => rmSync(join(disk, "filler"), { force: true }))).pipe(
      Layer.provideMerge(SqlSessions.layer),
      Layer.provide(PgClient.layer({ url: Redacted.make(url), startupParameters })),
      Layer.orDie
    )
  },
  survives: true as const,
  fillDisk: ({ disk }: { readonly disk: string }) =>
    Effect.sync(() => {
      const file = openSync(join(disk, "filler"), "w")
      const page = Buffer.alloc(4096)
      try {
        while (writeSync(file, page) === page.length);
      } catch {
        // It is full.
      }
      closeSync(file)
    })
}

/** The URL of a Redis server. */
export class RedisServer extends Context.Service<RedisServer, string>()("test/RedisServer") {
  static readonly layer = Layer.effect(RedisServer, redisServer)
}

let prefixes = 0

/** A prefix of its own. */
export const aPrefix = Effect.map(RedisServer, (url): Place => ({ url, name: `{s${process.pid}-${prefixes++}}:` }))

/** Keys with a prefix of their own, on a server that can be told to have no more memory. */
export const redis = {
  place: aPrefix,
  layer: ({ name, url }: Place) =>
    RedisSessions.layer({ prefix: name }).pipe(
      Layer.provideMerge(
        Layer.effectDiscard(Redis.Redis.use((server) => server.send("CONFIG", "SET", "maxmemory", "0")))
      ),
      Layer.provide(NodeRedis.layer({ url })),
      Layer.orDie
    ),
  survives: true as const,
  fillDisk: ({ url }: Place) =>
    Redis.Redis.use((server) => server.send("CONFIG", "SET", "maxmemory", "1")).pipe(
      Effect.provide(NodeRedis.layer({ url })),
      Effect.orDie
    )
}
