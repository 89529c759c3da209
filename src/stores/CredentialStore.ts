/**
 * Stores keys and OAuth tokens encrypted, and refreshes each by one process at a time.
 *
 * ```ts
 * import { Clock, Effect, Layer, Redacted } from "effect"
 * import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
 *
 * const program = Effect.gen(function* () {
 *   const credentials = yield* CredentialStore.CredentialStore
 *   yield* credentials.set("user/ada", "search", CredentialStore.ApiKey.make({ key: Redacted.make("…") }))
 *   const calendar = yield* credentials.refreshed("user/ada", "calendar", {
 *     refresh: (old) =>
 *       Effect.map(Clock.currentTimeMillis, (now) =>
 *         CredentialStore.OAuthToken.make({
 *           accessToken: Redacted.make("of the token endpoint"),
 *           expiresAt: now + 3_600_000
 *         })
 *       )
 *   })
 *   return calendar
 * }).pipe(Effect.provide(Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])))
 * ```
 *
 * A credential is encrypted by AES-256-GCM with a random nonce, and bound to its namespace and name. Without the key
 * nobody can read it, change it, or move it to another name. Values are `Redacted`, and no error or log contains them.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Aead from "effect/crypto/Aead"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Layer from "effect/Layer"
import * as RcMap from "effect/RcMap"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { JsonObject } from "../core/Json.ts"
import { makeId } from "../core/Message.ts"
import { span } from "../support/effect/span.ts"
import { CredentialKey } from "./CredentialKey.ts"
import { checkNames, corrupt, failure, type Reason } from "./internal/failure.ts"
import type { Fault } from "./internal/table.ts"
import { Storage } from "./Storage.ts"
import type { StoreError } from "./StoreError.ts"

const Secret = Schema.RedactedFromValue(Schema.String)

/** Schema of a key, or of a token that never expires. `metadata` are encrypted too, but can be printed. */
export const ApiKey = Schema.TaggedStruct("ApiKey", { key: Secret, metadata: Schema.optionalKey(JsonObject) })

/** Schema of the token of an OAuth server. `expiresAt` is in milliseconds since the epoch. */
export const OAuthToken = Schema.TaggedStruct("OAuthToken", {
  accessToken: Secret,
  refreshToken: Schema.optionalKey(Secret),
  expiresAt: Schema.optionalKey(Schema.Finite),
  scopes: Schema.optionalKey(Schema.Array(Schema.String)),
  metadata: Schema.optionalKey(JsonObject)
})

/** Schema of a credential. */
export const Credential = Schema.Union([ApiKey, OAuthToken])

/** A credential. Make one by `ApiKey.make` or `OAuthToken.make`. */
export type Credential = typeof Credential.Type

/** The operations of {@link CredentialStore}. */
type Service = {
  /** Stores a credential under a name, over an earlier one. */
  readonly set: (namespace: string, name: string, credential: Credential) => Effect.Effect<void, StoreError>
  /**
   * Reads a credential; `undefined` if the name has none. Fails with `WrongKey` if it was sealed with another key, or
   * changed.
   */
  readonly get: (namespace: string, name: string) => Effect.Effect<Credential | undefined, StoreError>
  /**
   * Gives a valid credential: the stored one or, if that is expired, a new one. One refresh runs at a time, in all
   * processes that share the storage; callers that come meanwhile get its result. A refresh that fails changes nothing.
   * Fails with `NotFound`, with the failures of `refresh`, and with `TimedOut`.
   */
  readonly refreshed: <E, R>(
    namespace: string,
    name: string,
    options: {
      /** Renews the stored credential, within 30 seconds. */
      readonly refresh: (credential: Credential) => Effect.Effect<Credential, E, R>
      /** By default, an `OAuthToken` expires a minute before its end, and an `ApiKey` never. */
      readonly isExpired?: ((credential: Credential) => boolean) | undefined
    }
  ) => Effect.Effect<Credential, StoreError | E, R>
  /** The names of all credentials of a namespace, at most 10,000. */
  readonly names: (namespace: string) => Effect.Effect<ReadonlyArray<string>, StoreError>
  /** Removes a credential, and reports whether the name had one. */
  readonly remove: (namespace: string, name: string) => Effect.Effect<boolean, StoreError>
}

/**
 * The store of credentials. A namespace or a name is any text of 1 to 256 characters without control characters. Give
 * no model a tool that reads from it: tools use credentials, and don't reveal them.
 */
export class CredentialStore extends Context.Service<CredentialStore, Service>()("effect-deepagents/CredentialStore") {}

/** Characters of a name. */
const most = 256
const mostCharacters = 65_536
const refreshMillis = 30_000
/** Longer than a refresh, the write after it, and the difference between clocks of machines. */
const leaseMillis = 60_000
const patienceMillis = leaseMillis + refreshMillis
const soonMillis = 60_000

const CredentialText = Schema.fromJsonString(Credential)
const encodeCredential = Schema.encodeUnknownResult(CredentialText)
const decodeCredential = Schema.decodeUnknownResult(CredentialText)

const SealedText = Schema.fromJsonString(
  Schema.Struct({ v: Schema.Literal(1), nonce: Schema.String, sealed: Schema.String })
)
const decodeSealed = Schema.decodeUnknownResult(SealedText)

const LeaseText = Schema.fromJsonString(Schema.Struct({ owner: Schema.String, until: Schema.Finite }))
const decodeLease = Schema.decodeUnknownResult(LeaseText)

const unreadable = corrupt("it is no credential of this version of effect-deepagents")

/** The data that encryption binds a credential to. */
const contextOf = (namespace: string, name: string): Uint8Array =>
  new TextEncoder().encode(JSON.stringify(["effect-deepagents/credential", 1, namespace, name]))

/** The key of a store, and its algorithm. */
interface Cipher {
  readonly aead: Aead.Aead["Service"]
  readonly key: CredentialKey["Service"]
}

// These failures have no cause: it may quote the credential.
const sealWith = ({ aead, key }: Cipher) =>
  Effect.fnUntraced(function* (
    namespace: string,
    name: string,
    credential: Credential
  ): Effect.fn.Return<string, Reason> {
    const text = Result.getOrUndefined(encodeCredential(credential))
    if (text === undefined || text.length > mostCharacters) {
      const problem = `a credential is an ApiKey or an OAuthToken of at most ${mostCharacters} characters of JSON`
      return yield* Effect.fail<Reason>({ _tag: "InvalidValue", problem })
    }
    const nonce = SecureRandom.randomBytesUnsafe(Aead.aes256Gcm.nonceLength)
    const sealed = yield* Effect.mapError(
      aead.encrypt(key, new TextEncoder().encode(text), { nonce, aad: contextOf(namespace, name) }),
      (): Reason => ({ _tag: "NoKey", problem: "it can't be used for AES-256-GCM here" })
    )
    return JSON.stringify({ v: 1, nonce: Base64.encode(nonce), sealed: Base64.encode(sealed) })
  })

const openWith = ({ aead, key }: Cipher) =>
  Effect.fnUntraced(function* (
    namespace: string,
    name: string,
    value: string
  ): Effect.fn.Return<Credential, Reason | Fault> {
    const parts = Result.getOrUndefined(decodeSealed(value))
    const nonce = Result.getOrUndefined(Base64.decode(parts?.nonce ?? ""))
    const sealed = Result.getOrUndefined(Base64.decode(parts?.sealed ?? ""))
    if (parts === undefined || nonce === undefined || sealed === undefined) return yield* Effect.fail(unreadable)
    const bytes = yield* Effect.mapError(
      aead.decrypt(key, sealed, { nonce, aad: contextOf(namespace, name) }),
      (): Reason => ({ _tag: "WrongKey" })
    )
    const credential = Result.getOrUndefined(decodeCredential(new TextDecoder().decode(bytes)))
    return credential === undefined ? yield* Effect.fail(unreadable) : credential
  })

const failWith =
  (operation: string, namespace: string, name: string) =>
  (reason: Reason | Fault): StoreError =>
    failure(operation, `${namespace} ${name}`, reason)

/** Retries to store a refreshed token for about three seconds: it may be the only valid one. */
const persistent = <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  Effect.retry(effect, {
    schedule: Schedule.exponential("50 millis").pipe(Schedule.upTo({ times: 6 })),
    while: ({ reason }) => reason === "Unavailable"
  })

/** The store, over a storage and a key. */
export const layer: Layer.Layer<CredentialStore, never, Storage | CredentialKey> = Layer.effect(
  CredentialStore,
  Effect.gen(function* () {
    const storage = yield* Storage
    const cipher = { aead: yield* Aead.Aead, key: yield* CredentialKey }
    const seal = sealWith(cipher)
    const open = openWith(cipher)
    const credentials = storage.table("credentials")
    const leases = storage.table("leases")
    const locks = yield* RcMap.make({ lookup: (_: string) => Semaphore.make(1) })

    /** A credential, and its stored text. */
    const readSealed = Effect.fnUntraced(function* (namespace: string, name: string) {
      const value = yield* credentials.get(namespace, name)
      return value === undefined ? undefined : { value, credential: yield* open(namespace, name, value) }
    })

    const existing = Effect.fnUntraced(function* (namespace: string, name: string) {
      return (yield* readSealed(namespace, name)) ?? (yield* Effect.fail<Reason>({ _tag: "NotFound" }))
    })

    /** Takes the lease unless somebody holds it, and gives the text of the lease. */
    const lease = Effect.fnUntraced(function* (namespace: string, name: string) {
      const now = yield* Clock.currentTimeMillis
      const leaseText = yield* leases.get(namespace, name)
      const holder = Result.getOrUndefined(decodeLease(leaseText ?? ""))
      if (holder !== undefined && holder.until > now) return undefined
      const mine = JSON.stringify({ owner: makeId(), until: now + leaseMillis })
      return (yield* leases.swap(namespace, name, leaseText, mine)) ? mine : undefined
    })

    const refreshed: Service["refreshed"] = (namespace, name, { isExpired, refresh }) => {
      const fail = failWith("refresh", namespace, name)
      const report = Effect.mapError(fail)
      const isOld = Effect.fnUntraced(function* (credential: Credential) {
        if (isExpired !== undefined) return isExpired(credential)
        const now = yield* Clock.currentTimeMillis
        return credential._tag === "OAuthToken" && (credential.expiresAt ?? Infinity) <= now + soonMillis
      })

      const storeRenewed = Effect.fnUntraced(function* <E, R>(
        found: { readonly value: string; readonly credential: Credential },
        renewal: Effect.Effect<Credential, E | StoreError, R>
      ) {
        const sealed = yield* report(seal(namespace, name, yield* renewal))
        const isStored = yield* report(persistent(credentials.swap(namespace, name, found.value, sealed)))
        if (!isStored)
          yield* Effect.logDebug("A credential was replaced while it was refreshed; what was set last counts")
        return (yield* report(existing(namespace, name))).credential
      })

      // Nothing interrupts the steps after a refresh: the old token may be void by then.
      const refreshAlone = Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const since = yield* Clock.currentTimeMillis
          for (;;) {
            const entry = yield* report(existing(namespace, name))
            if (!(yield* isOld(entry.credential))) return entry.credential
            const mine = yield* report(lease(namespace, name))
            if (mine === undefined) {
              if ((yield* Clock.currentTimeMillis) - since > patienceMillis) {
                return yield* fail({ _tag: "TimedOut", millis: patienceMillis })
              }
              yield* restore(Effect.sleep("100 millis"))
              continue
            }
            const renewal = Effect.timeoutOrElse(
              Effect.suspend(() => refresh(entry.credential)),
              {
                duration: refreshMillis,
                orElse: () => Effect.fail(fail({ _tag: "TimedOut", millis: refreshMillis }))
              }
            )
            // The holder of the lease before may have refreshed it since it was read.
            const attempt = Effect.flatMap(report(existing(namespace, name)), (latest) =>
              latest.value === entry.value ? storeRenewed(entry, restore(renewal)) : Effect.undefined
            )
            const result = yield* Effect.ensuring(attempt, Effect.ignore(leases.swap(namespace, name, mine, undefined)))
            if (result !== undefined) return result
          }
        })
      )

      return Effect.andThen(
        report(checkNames([namespace, name], most)),
        Effect.scoped(
          Effect.flatMap(RcMap.get(locks, JSON.stringify([namespace, name])), (lock) =>
            lock.withPermits(1)(refreshAlone)
          )
        )
      )
    }

    const onCredential =
      (method: string, operation: string, namespace: string, name: string) =>
      <A>(effect: Effect.Effect<A, Reason | Fault>): Effect.Effect<A, StoreError> =>
        span(`CredentialStore.${method}`)(
          Effect.mapError(
            Effect.andThen(checkNames([namespace, name], most), effect),
            failWith(operation, namespace, name)
          )
        )

    return {
      refreshed: (namespace, name, options) => span("CredentialStore.refreshed")(refreshed(namespace, name, options)),
      set: (namespace, name, credential) =>
        Effect.flatMap(seal(namespace, name, credential), (value) =>
          credentials.put(namespace, [{ key: name, value }])
        ).pipe(onCredential("set", "set", namespace, name)),
      get: (namespace, name) =>
        Effect.map(readSealed(namespace, name), (entry) => entry?.credential).pipe(
          onCredential("get", "get", namespace, name)
        ),
      names: (namespace) =>
        Effect.map(credentials.scan(namespace, { limit: 10_000 }), (rows) => rows.map((row) => row.key)).pipe(
          onCredential("names", "list", namespace, "all")
        ),
      remove: (namespace, name) =>
        Effect.flatMap(credentials.get(namespace, name), (value) =>
          value === undefined ? Effect.succeed(false) : credentials.swap(namespace, name, value, undefined)
        ).pipe(onCredential("remove", "remove", namespace, name))
    }
  })
).pipe(Layer.provide(Layer.provide(Aead.layerWebCrypto, SecureRandom.layerWebCrypto)))
