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

/** The most spaces that are held in memory. */
const cached = 64

const toFault = (error: Fault | PlatformError): Fault =>
  "_tag" in error ? { reason: "Unavailable", problem: problemOf(error), cause: error } : error

interface OpenLog extends Log.Holder {
  readonly place: Log.Place
  readonly lock: Semaphore.Semaphore
}

/** Makes the tables of a folder. */
export const make =
  (fs: FileSystem.FileSystem, path: Path.Path, options: { readonly folder: string; readonly fsync: boolean }) =>
  (name: string): Table => {
    const spaces = new Map<string, OpenLog>()

    const openSpace = Effect.fnUntraced(function* (space: string) {
      const folder = path.join(options.folder, name, yield* fileNameOf(space))
      const open = spaces.get(space) ?? {
        log: undefined,
        lock: Semaphore.makeUnsafe(1),
        place: { fs, path, folder, space, fsync: options.fsync }
      }
      spaces.delete(space)
      spaces.set(space, open)
      const [oldest] = spaces.keys()
      // A space that is dropped while it is used is safe: two logs of a space act like two processes.
      if (spaces.size > cached && oldest !== undefined) spaces.delete(oldest)
      return open
    })

    const onSpace = <A>(
      space: string,
      body: (open: OpenLog) => Effect.Effect<A, Fault | PlatformError>
    ): Effect.Effect<A, Fault> =>
      Effect.mapError(
        Effect.flatMap(openSpace(space), (open) => open.lock.withPermits(1)(body(open))),
        toFault
      )

    const readRows = <A>(space: string, body: (rows: Rows.Rows<Entry>) => A): Effect.Effect<A, Fault> =>
      onSpace(space, (open) => Effect.map(Log.readRows(open.place, open), body))

    return {
      get: (space, key) => readRows(space, ({ map }) => map.get(key)?.value),
      put: (space, added) =>
        onSpace(space, (open) =>
          Effect.asVoid(
            Log.commit(open.place, open, () => ({
              _tag: "Set",
              by: makeId(),
              rows: added.map(({ key, value }) => [key, value])
            }))
          )
        ),
      swap: (space, key, expected, next) =>
        onSpace(space, (open) =>
          Log.commit(open.place, open, ({ map }) => {
            const entry = map.get(key)
            if (entry?.value !== expected) return undefined
            return { _tag: "Set", by: makeId(), rows: [[key, next ?? null]], where: entry?.by ?? null }
          })
        ),
      scan: (space, options) => readRows(space, (rows) => Rows.scan(rows, options, (entry) => entry?.value)),
      count: (space) => readRows(space, ({ map }) => map.size),
      clear: (space) =>
        onSpace(space, (open) => Effect.asVoid(Log.commit(open.place, open, () => ({ _tag: "Clear", by: makeId() }))))
    }
  }
