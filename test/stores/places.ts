/**
 * The storages that every store is held to, each at a place of its own.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { layer as suite } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Storage } from "effect-deepagents/stores"
import * as fc from "fast-check"
import { PgLive } from "../servers/postgres.ts"

export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "stores-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const file = (path: string) => Storage.layerFile({ folder: path }).pipe(Layer.provide(NodeServices.layer))

const sqlite = (path: string) =>
  Storage.layerSql.pipe(Layer.provide(SqliteClient.layer({ file: join(path, "stores.db") })))

const inFolder = <E>(make: (path: string) => Layer.Layer<Storage.Storage, E>) => Layer.unwrap(Effect.map(folder, make))

const kinds = {
  memory: Storage.layerMemory,
  file: inFolder(file),
  sqlite: inFolder(sqlite),
  postgres: Storage.layerSql.pipe(Layer.provide(PgLive))
}

type Tests = Parameters<ReturnType<typeof suite<Storage.Storage, unknown>>>[1]

/** Names as they may be: everything but control characters, well-formed. */
export const name = (maxLength: number) =>
  fc.string({ unit: "grapheme", minLength: 1, maxLength }).filter((text) => !/[\p{Cc}\u2028\u2029]/u.test(text))

/** Holds every storage to the same tests. */
export const onAll = (body: (it: Parameters<Tests>[0]) => void): void => {
  for (const [kind, storage] of Object.entries(kinds)) {
    const live: Layer.Layer<Storage.Storage, unknown> = storage
    suite(live, { timeout: 60_000 })(kind, body)
  }
}
