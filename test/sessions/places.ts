/**
 * The stores that are held to the conformance suite, each at a place of its own.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, PlatformError } from "effect"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { SessionConformance } from "effect-deepagents/testing"
import { make } from "../../src/sessions/internal/store.ts"
import { SqliteSessions } from "../../src/sessions/sqlite/index.ts"
import { open } from "../../src/sessions/sqlite/internal/database.ts"
import * as Tables from "../../src/sessions/sqlite/internal/tables.ts"

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

/** The store as the layer makes it, on a connection that can be told to have no more pages. */
export const sqliteOnSmallDisk = {
  place: Effect.map(folder, (path) => ({
    file: join(path, "sessions.db"),
    open: undefined as DatabaseSync | undefined
  })),
  layer: (place: { readonly file: string; open: DatabaseSync | undefined }) =>
    Layer.effect(
      SessionStore.SessionStore,
      Effect.map(open(place.file, "full"), (database) => {
        place.open = database
        return make(Tables.make(database))
      })
    ).pipe(Layer.orDie),
  survives: true as const,
  fillDisk: (place: { readonly file: string; open: DatabaseSync | undefined }) =>
    Effect.sync(() => {
      const pages = place.open?.prepare("PRAGMA page_count").get()?.["page_count"]
      place.open?.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`)
    })
}

/** A disk with so many bytes left: what goes over them is written in part. */
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
