/**
 * Primitives over a key-value store: a key for the content of each file, and keys for the index of each directory.
 *
 * Files are found by their path alone. An index only lists a directory. It is written after the file, from the root
 * down, so that later operations detect and repair unfinished writes.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { KeyValueStore, KeyValueStoreError } from "effect/persistence/KeyValueStore"
import * as BackendError from "../../../core/BackendError.ts"
import type { Child, Content, Primitives, Stat } from "../derive/primitives.ts"
import { toBytes } from "../derive/target.ts"
import { versionOf } from "../derive/version.ts"
import * as Path from "./path.ts"
import * as Index from "./storeIndex.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** Pages as they were saved and as they were read, by key. */
export type KnownPages = Map<string, { readonly json: string; readonly page: Index.Page }>

/** The number of pages that are kept as they were read. */
const knownPages = 256

/** The files of one namespace. */
export interface Namespace {
  readonly store: KeyValueStore
  /** A key, made from texts that no other key is made from. */
  readonly keyOf: (kind: "file" | "page", path: string, place: string) => Effect.Effect<string>
  /** Lets one at a time change indexes. */
  readonly alone: <A>(change: Failing<A>) => Failing<A>
  readonly pageCache: KnownPages
}

const fail = (path: string, reason: BackendError.Reason, detail?: string): Failing<never> =>
  Effect.fail(BackendError.make("store", path, reason, detail === undefined ? undefined : { detail }))

const available = <A>(path: string, effect: Effect.Effect<A, KeyValueStoreError>): Failing<A> =>
  Effect.mapError(effect, (cause) => {
    const detail = `the key-value store failed to ${cause.method}`
    return BackendError.make("store", path, { _tag: "Unavailable" }, { detail, cause })
  })

/** A change that has begun is done to its end: a store may overwrite in place, and half a file is worse than a wait. */
const whole = <A, E>(change: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.uninterruptible(change)

const pagesOf = ({ keyOf, pageCache, store }: Namespace): Index.Pages => {
  const note = (key: string, json: string, page: Index.Page) => {
    pageCache.delete(key)
    pageCache.set(key, { json, page })
    const oldest = pageCache.size > knownPages ? pageCache.keys().next().value : undefined
    if (oldest !== undefined) pageCache.delete(oldest)
  }
  return {
    get: Effect.fnUntraced(function* (folder, place) {
      const key = yield* keyOf("page", folder, place)
      const json = yield* available(folder, store.get(key))
      const before = pageCache.get(key)
      if (json !== undefined && before?.json === json) return before.page
      const page = Index.decodePage(json)
      if (page === undefined)
        return yield* fail(folder, { _tag: "Unavailable" }, "what the store has for this directory is no index of ours")
      if (json !== undefined) note(key, json, page)
      return page
    }),
    set: Effect.fnUntraced(function* (folder, place, page) {
      const key = yield* keyOf("page", folder, place)
      if (page !== "parted" && page.size === 0) {
        pageCache.delete(key)
        return yield* available(folder, whole(store.remove(key)))
      }
      const json = Index.encodePage(page)
      yield* available(folder, whole(store.set(key, json)))
      note(key, json, page)
    })
  }
}

export const primitives = (namespace: Namespace): Primitives => {
  const { alone, keyOf, store } = namespace
  const pages = pagesOf(namespace)

  const file = <A>(path: string, use: (key: string) => Effect.Effect<A, KeyValueStoreError>): Failing<A> =>
    available(
      path,
      Effect.flatMap(keyOf("file", path, ""), (key) => use(key))
    )

  const holds = (path: string): Failing<boolean> => file(path, (key) => store.has(key))

  const bytesOf = (path: string): Failing<Uint8Array | undefined> => file(path, (key) => store.getUint8Array(key))

  const find = (path: string): Failing<Index.Entry | undefined> =>
    Index.find(pages, Path.parent(path), Path.basename(path))

  /** Puts a file into the index of its directory, and that into the one above, from the root down. */
  const enter = (path: string, entry: Index.Entry): Failing<void> =>
    Effect.gen(function* () {
      const folder = Path.parent(path)
      if ((yield* find(path)) === undefined) {
        let above = "/"
        for (const name of Path.segments(folder)) {
          const folderEntry = yield* Index.find(pages, above, name)
          if (folderEntry?.kind !== "directory") yield* Index.putEntry(pages, above, name, { kind: "directory" })
          above = Path.join(above, name)
        }
      }
      yield* Index.putEntry(pages, folder, Path.basename(path), entry)
    })

  /** Takes a path out of the index of its directory, and that out of the one above if nothing is left in it. */
  const leave = (path: string): Failing<void> =>
    Effect.gen(function* () {
      for (let at = path; at !== "/"; at = Path.parent(at)) {
        yield* Index.drop(pages, Path.parent(at), Path.basename(at))
        if (!(yield* Index.isEmpty(pages, Path.parent(at)))) return
      }
    })

  const save = (path: string, bytes: Uint8Array, modifiedAt: number): Failing<void> =>
    Effect.andThen(
      file(path, (key) => whole(store.set(key, bytes))),
      alone(enter(path, { kind: "file", size: bytes.length, modifiedAt }))
    )

  const remove = (path: string): Failing<void> =>
    alone(
      Effect.gen(function* () {
        if (!(yield* Index.isEmpty(pages, path))) return yield* fail(path, { _tag: "IsDirectory" })
        yield* file(path, (key) => whole(store.remove(key)))
        return yield* leave(path)
      })
    )

  /** Removes an index entry without a file, after a removal that did not finish. */
  const mend = (path: string): Failing<void> =>
    alone(Effect.flatMap(holds(path), (there) => (there ? Effect.void : leave(path))))

  /** Adds a file to the index after a write that did not finish. */
  const adopt = (path: string): Failing<Stat | undefined> =>
    Effect.gen(function* () {
      if (!(yield* holds(path))) return undefined
      const modifiedAt = yield* Clock.currentTimeMillis
      return yield* alone(
        Effect.gen(function* () {
          const bytes = yield* bytesOf(path)
          if (bytes === undefined) return undefined
          const entry = { kind: "file" as const, size: bytes.length, modifiedAt }
          yield* enter(path, entry)
          return entry
        })
      )
    })

  const readContent = (path: string): Failing<Content> =>
    Effect.gen(function* () {
      const bytes = yield* bytesOf(path)
      if (bytes !== undefined) return bytes
      yield* mend(path)
      return yield* fail(path, { _tag: "NotFound" })
    })

  return {
    stat: Effect.fnUntraced(function* (path) {
      if (path === "/") return { kind: "directory" }
      const entry = yield* find(path)
      if (entry?.kind === "file" || (entry !== undefined && !(yield* Index.isEmpty(pages, path)))) return entry
      return yield* adopt(path)
    }),
    list: (path) =>
      Effect.map(Index.all(pages, path), (entries) => entries.map(([name, entry]): Child => ({ name, ...entry }))),
    read: readContent,
    write: Effect.fnUntraced(function* (path, content) {
      // The store may keep the bytes, and the caller may change them.
      const bytes = typeof content === "string" ? toBytes(content) : content.slice()
      yield* save(path, bytes, yield* Clock.currentTimeMillis)
      return versionOf(bytes)
    }),
    remove,
    rename: Effect.fnUntraced(function* (from, to) {
      const entry = yield* find(from)
      const bytes = toBytes(yield* readContent(from))
      yield* save(to, bytes, entry?.kind === "file" ? entry.modifiedAt : yield* Clock.currentTimeMillis)
      yield* remove(from)
    })
  }
}
