/**
 * The files that SQLite has open in this process, which must not be opened otherwise.
 *
 * SQLite locks files by POSIX locks. A process loses its locks on a file when it closes any descriptor of it, even of a
 * reader, and another process may then write at the same time, or remove a log in use. See "How To Corrupt An
 * SQLite Database File", https://sqlite.org/howtocorrupt.html, 2.2.
 */
import { statSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"

/** The locks belong to the process, and so does the set. */
const open = new Map<symbol, string>()

/** The endings of the file and of its companions, which SQLite makes. */
const endings = ["", "-wal", "-shm", "-journal"]

/** Identifies the file of a stat, by any of its names. */
const keyOf = ({ dev, ino }: { readonly dev: bigint | number; readonly ino: bigint | number }): string =>
  `${dev} ${ino}`

/** Forgets the keys, as files were made or closed. */
const forget = Effect.sync(() => {
  cache = undefined
})

/** Opens a file by SQLite, and marks it as open until the scope has closed it. */
export const opening = <A, E, R>(path: string, acquire: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const id = Symbol(path)
      open.set(id, path)
      return id
    }),
    (id) =>
      Effect.andThen(
        Effect.sync(() => open.delete(id)),
        forget
      )
  ).pipe(Effect.andThen(forget), Effect.andThen(acquire), Effect.tap(forget))

const findKeys = (): ReadonlySet<string> => {
  const keys = new Set<string>()
  for (const path of new Set(open.values())) {
    for (const ending of endings) {
      const stat = Result.try(() => statSync(path + ending, { bigint: true, throwIfNoEntry: false }))
      if (Result.isSuccess(stat) && stat.success !== undefined) keys.add(keyOf(stat.success))
    }
  }
  return keys
}

/** The milliseconds for which the keys hold: SQLite makes and removes companions meanwhile. */
const maxAge = 20

let cache: { readonly keys: ReadonlySet<string>; readonly at: number } | undefined

export const hasOpen = (): boolean => open.size > 0

/** True if the file of a stat is open. */
export const isOpen = (stat: { readonly dev: bigint | number; readonly ino: bigint | number }): boolean => {
  if (open.size === 0) return false
  const now = performance.now()
  if (cache === undefined || now - cache.at > maxAge) cache = { keys: findKeys(), at: now }
  return cache.keys.has(keyOf(stat))
}
