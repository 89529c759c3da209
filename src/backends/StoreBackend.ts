/**
 * Stores files in any key-value store (memory, a folder, SQL, the browser), in isolated namespaces.
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
import { makeEffectCheck } from "../support/options/check.ts"
import * as Derive from "./internal/derive/backend.ts"
import * as Locks from "./internal/files/locks.ts"
import * as StoreFiles from "./internal/files/store.ts"
import * as shapes from "./internal/shapes.ts"

/** The owner of files: a text, or a path of texts. `"a"` equals `["a"]`, but `["a", "b"]` differs from `"a/b"`. */
type Namespace = string | ReadonlyArray<string>

/**
 * Options of the backend.
 *
 * - `namespace`: the owner of the files; an effect is evaluated for each operation, so one layer can serve many
 *   tenants
 * - `maxFileSize`: the largest file, in bytes; 10 MiB by default
 */
type Options<R = never> = {
  /** The owner of the files. An effect is evaluated for each operation, so one layer can serve many owners. */
  readonly namespace: Namespace | Effect.Effect<Namespace, BackendError, R>
  /** The largest file in bytes. Default: 10 MiB. */
  readonly maxFileSize?: number | undefined
}

/** The number of files that a search reads at once. */
const concurrency = 8

/** The number of cached hashes. */
const remembered = 1_000

/** The longest cached text, in characters. */
const longest = 4_096

interface SharedState {
  readonly paths: Locks.Locks
  readonly indexes: Locks.Locks
  readonly pageCache: StoreFiles.KnownPages
}

// Shared by all layers of this process on one store.
const locksOf = new WeakMap<KeyValueStore, SharedState>()

const sharedOf = (store: KeyValueStore): SharedState => {
  const shared = locksOf.get(store) ?? { paths: Locks.make(), indexes: Locks.make(), pageCache: new Map() }
  locksOf.set(store, shared)
  return shared
}

/** Makes the hash function. Its texts have one length and lower case, and suit any key, file name and collation. */
const makeHash = Effect.map(Digest.Digest, ({ digestHex }) => {
  const hashes = new Map<string, string>()
  const encoder = new TextEncoder()
  return (text: string): Effect.Effect<string> =>
    Effect.suspend(() => {
      const cachedHash = hashes.get(text)
      if (cachedHash !== undefined) return Effect.succeed(cachedHash)
      return Effect.map(digestHex(Digest.sha256, encoder.encode(text)), (hash) => {
        if (text.length <= longest) hashes.set(text, hash)
        const oldest = hashes.size > remembered ? hashes.keys().next().value : undefined
        if (oldest !== undefined) hashes.delete(oldest)
        return hash
      })
    })
}).pipe(Effect.provide(Digest.layerWebCrypto))

const refuseMake = makeEffectCheck("StoreBackend", shapes.storeBackendMake)

/**
 * Makes a backend over the key-value store in context.
 *
 * A key combines SHA-256 hashes of the namespace and the path. All keys have the same length, so none is a prefix of
 * another, and the store never interprets a path. It needs `crypto.subtle`, which browsers offer in secure contexts
 * only.
 *
 * Within one process all operations on a store are safe across layers: writers of one file or directory wait for
 * each other. An interruption waits for the current `set`. A crash between the steps of a write loses nothing:
 * content is stored before its directory entry, and readers repair leftovers. A crash prefixPath a `set` depends on the
 * store: `KeyValueStore.layerFileSystem` overwrites in place and may leave half a file, or half a directory index,
 * which is then `Unavailable`.
 *
 * Several processes on one store find each other's files by path. But a key-value store has no compare-and-swap: the
 * last of two concurrent edits wins. Of two files created at once in one directory, one may be missing from listings
 * and searches until its next read or write. If that matters, give each process its own namespace.
 */
export const make = <R = never>(options: Options<R>): Effect.Effect<Service, never, KeyValueStore | R> =>
  refuseMake(options) ??
  Effect.gen(function* () {
    const store = yield* KeyValueStore
    const context = yield* Effect.context<R>()
    const hash = yield* makeHash
    const { indexes, pageCache, paths } = sharedOf(store)
    const { maxFileSize, namespace } = options
    // Services of the request override the services of the layer.
    const current = Effect.isEffect(namespace)
      ? Effect.updateContext(namespace, (now: Context.Context<never>) => Context.merge(context, now))
      : Effect.succeed(namespace)
    return Derive.suspend(() =>
      Effect.gen(function* () {
        const tenantName = yield* current
        const tenant = yield* hash(JSON.stringify(typeof tenantName === "string" ? [tenantName] : tenantName))
        const prefixPath = (path: string) => `/${tenant}${path}`
        const primitives = StoreFiles.primitives({
          store,
          // Paths contain no NUL.
          keyOf: (kind, path, place) => Effect.map(hash(`${path}\0${place}`), (name) => `${tenant}-${kind}-${name}`),
          alone: indexes.hold([`/${tenant}`]),
          pageCache
        })
        const locks = { ...paths, hold: (heldPaths: ReadonlyArray<string>) => paths.hold(heldPaths.map(prefixPath)) }
        return Derive.make(primitives, locks, { concurrency, maxFileSize })
      })
    )
  })

/** The layer of {@link make}. */
export const layer = <R = never>(options: Options<R>): Layer.Layer<Backend, never, KeyValueStore | R> =>
  layerOf(make(options))
