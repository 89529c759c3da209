/** A table of rows in files, a directory for each namespace. */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Semaphore from "effect/Semaphore"
import { makeId } from "../../../core/Message.ts"
import { problemOf } from "../../../support/store/disk.ts"
import { fileNameOf } from "../../../support/store/hash.ts"
import * as Rows from "../rows.ts"
import type { Fault, Table } from "../table.ts"
import type { Entry } from "./change.ts"
import * as Log from "./log.ts"

/** So many spaces are held in memory. */
const cached = 64

const toFault = (error: Fault | PlatformError): Fault =>
  "_tag" in error ? { reason: "Unavailable", problem: problemOf(error), cause: error } : error

interface Open extends Log.Held {
  readonly place: Log.Place
  readonly lock: Semaphore.Semaphore
}

/** Tables in a folder. */
export const make =
  (fs: FileSystem.FileSystem, path: Path.Path, options: { readonly folder: string; readonly fsync: boolean }) =>
  (name: string): Table => {
    const spaces = new Map<string, Open>()

    const opened = Effect.fnUntraced(function* (space: string) {
      const folder = path.join(options.folder, name, yield* fileNameOf(space))
      const open = spaces.get(space) ?? {
        log: undefined,
        lock: Semaphore.makeUnsafe(1),
        place: { fs, path, folder, space, fsync: options.fsync }
      }
      spaces.delete(space)
      spaces.set(space, open)
      const [oldest] = spaces.keys()
      // One that is dropped while it is used does no harm: the two are as two processes.
      if (spaces.size > cached && oldest !== undefined) spaces.delete(oldest)
      return open
    })

    const within = <A>(
      space: string,
      body: (open: Open) => Effect.Effect<A, Fault | PlatformError>
    ): Effect.Effect<A, Fault> =>
      Effect.mapError(
        Effect.flatMap(opened(space), (open) => open.lock.withPermits(1)(body(open))),
        toFault
      )

    const look = <A>(space: string, body: (rows: Rows.Rows<Entry>) => A): Effect.Effect<A, Fault> =>
      within(space, (open) => Effect.map(Log.read(open.place, open), body))

    return {
      get: (space, key) => look(space, ({ map }) => map.get(key)?.value),
      put: (space, added) =>
        within(space, (open) =>
          Effect.asVoid(
            Log.commit(open.place, open, () => ({
              _tag: "Set",
              by: makeId(),
              rows: added.map(({ key, value }) => [key, value])
            }))
          )
        ),
      swap: (space, key, expected, next) =>
        within(space, (open) =>
          Log.commit(open.place, open, ({ map }) => {
            const found = map.get(key)
            if (found?.value !== expected) return undefined
            return { _tag: "Set", by: makeId(), rows: [[key, next ?? null]], where: found?.by ?? null }
          })
        ),
      scan: (space, scan) =>
        look(space, (rows) => Rows.keysOf(rows, scan).map((key) => ({ key, value: rows.map.get(key)?.value ?? "" }))),
      count: (space) => look(space, ({ map }) => map.size),
      clear: (space) =>
        within(space, (open) => Effect.asVoid(Log.commit(open.place, open, () => ({ _tag: "Clear", by: makeId() }))))
    }
  }
