/**
 * Files in any key-value store (memory, a folder, SQL, the browser), in namespaces that can't be crossed.
 *
 * ```ts
 * import { Context, Effect, Layer } from "effect"
 * import { StoreBackend } from "effect-deepagents/backends"
 * import { KeyValueStore } from "effect/persistence"
 *
 * const Tenant = Context.Reference<string>("app/Tenant", { defaultValue: () => "nobody" })
 *
 * const files = StoreBackend.layer({ namespace: Effect.map(Tenant, (tenant) => ["tenants", tenant]) }).pipe(
 *   Layer.provide(KeyValueStore.layerMemory)
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { KeyValueStore } from "effect/persistence/KeyValueStore"
import { type Backend, layer as layerOf, type Service } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import * as Derive from "./internal/derive/backend.ts"
import * as Locks from "./internal/files/locks.ts"
import * as StoreFiles from "./internal/files/store.ts"

/** The owner of files: any text, or several from the outside in. `"a"` is `["a"]`, and `["a", "b"]` is not `"a/b"`. */
export type Namespace = string | ReadonlyArray<string>

/**
 * `namespace` says whose files these are; as an effect it is asked for each operation, by the fiber that does it, which
 * is how one layer serves many tenants. `maxFileSize` bounds every file, in bytes (default 10 MiB).
 */
export interface Options<R = never> {
  readonly namespace: Namespace | Effect.Effect<Namespace, BackendError, R>
  readonly maxFileSize?: number | undefined
}

/** The number of files that a search reads at once. */
const concurrency = 8

/** Keys that were made lately, so that they are not made again for each operation. */
const remembered = 1_000

/** Only what is short is worth remembering. */
const longest = 4_096

interface Shared {
  readonly paths: Locks.Locks
  readonly indexes: Locks.Locks
  readonly known: StoreFiles.KnownPages
}

// By store, so that all who work on it in this process wait for each other.
const locksOf = new WeakMap<KeyValueStore, Shared>()

const sharedOf = (store: KeyValueStore): Shared => {
  const shared = locksOf.get(store) ?? { paths: Locks.make(), indexes: Locks.make(), known: new Map() }
  locksOf.set(store, shared)
  return shared
}

/** Names of one length in lower case, whatever the text: fit for keys, for file names, and for any collation. */
const makeHash = Effect.map(Digest.Digest, ({ digestHex }) => {
  const known = new Map<string, string>()
  const encoder = new TextEncoder()
  return (text: string): Effect.Effect<string> =>
    Effect.suspend(() => {
      const found = known.get(text)
      if (found !== undefined) return Effect.succeed(found)
      return Effect.map(digestHex(Digest.sha256, encoder.encode(text)), (hash) => {
        if (text.length <= longest) known.set(text, hash)
        const oldest = known.size > remembered ? known.keys().next().value : undefined
        if (oldest !== undefined) known.delete(oldest)
        return hash
      })
    })
}).pipe(Effect.provide(Digest.layerWebCrypto))

/**
 * Makes a backend over the key-value store in context.
 *
 * A key is made of a hash (SHA-256) of the namespace and one of the path: all keys have the same length, so none begins
 * with another one, and what is in a namespace or a path has no meaning to the store. It needs `crypto.subtle`, which a
 * browser has in secure contexts.
 *
 * Within one process all operations on a store are safe, by however many layers: writers of one file, and of one
 * directory, wait for each other. An interruption waits for the `set` that has begun. A crash between the parts of a
 * write loses nothing: what a file holds is stored before its directory is told, and what is left over is mended when
 * it is read. A crash in the middle of a `set` does what the store makes of it: `KeyValueStore.layerFileSystem`
 * overwrites in place, and may be left with half a file, or half the index of a directory, which is then `Unavailable`.
 *
 * Several processes on one store always find each other's files by their path. But a key-value store can't compare and
 * swap: of two processes that edit one file at the same moment the last one wins, and of two that make files in one
 * directory at the same moment, one file may be missing from listings and searches until it is read or written again.
 * Give each process its own namespace if that matters.
 */
export const make = <R = never>(options: Options<R>): Effect.Effect<Service, never, KeyValueStore | R> =>
  Effect.gen(function* () {
    const store = yield* KeyValueStore
    const context = yield* Effect.context<R>()
    const hash = yield* makeHash
    const { indexes, known, paths } = sharedOf(store)
    const { maxFileSize, namespace } = options
    // Services of the request go before those that there were when the layer was made.
    const current = Effect.isEffect(namespace)
      ? Effect.updateContext(namespace, (now: Context.Context<never>) => Context.merge(context, now))
      : Effect.succeed(namespace)
    return Derive.suspend(() =>
      Effect.gen(function* () {
        const given = yield* current
        const tenant = yield* hash(JSON.stringify(typeof given === "string" ? [given] : given))
        const within = (path: string) => `/${tenant}${path}`
        const primitives = StoreFiles.primitives({
          store,
          // No path has a NUL.
          keyOf: (kind, path, place) => Effect.map(hash(`${path}\0${place}`), (name) => `${tenant}-${kind}-${name}`),
          alone: indexes.hold([`/${tenant}`]),
          known
        })
        const locks = { ...paths, hold: (held: ReadonlyArray<string>) => paths.hold(held.map(within)) }
        return Derive.make(primitives, locks, { concurrency, maxFileSize })
      })
    )
  })

/** The layer of {@link make}. */
export const layer = <R = never>(options: Options<R>): Layer.Layer<Backend, never, KeyValueStore | R> =>
  layerOf(make(options))
