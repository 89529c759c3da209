/**
 * Credentials: keys and OAuth tokens, sealed wherever they are kept, and refreshed by one at a time.
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
 * Credentials are encrypted by AES-256-GCM with a random nonce each time, and bound to their namespace and name: they
 * can't be read without the key, changed, or put in another one's place. Values are `Redacted`, and no error or log has
 * them.
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
import { nameProblem } from "../support/text/names.ts"
import { CredentialKey } from "./CredentialKey.ts"
import { type Fault, Storage } from "./Storage.ts"
import { make as failure, type Reason, type StoreError } from "./StoreError.ts"

const Secret = Schema.RedactedFromValue(Schema.String)

/** Schema of a key, or a token without an end. `metadata` are sealed too, but can be printed. */
export const ApiKey = Schema.TaggedStruct("ApiKey", { key: Secret, metadata: Schema.optionalKey(JsonObject) })

/** Schema of what an OAuth server gave. `expiresAt` is in milliseconds since the epoch. */
export const OAuthToken = Schema.TaggedStruct("OAuthToken", {
  accessToken: Secret,
  refreshToken: Schema.optionalKey(Secret),
  expiresAt: Schema.optionalKey(Schema.Finite),
  scopes: Schema.optionalKey(Schema.Array(Schema.String)),
  metadata: Schema.optionalKey(JsonObject)
})

/** Schema of a {@link Credential}. */
export const Credential = Schema.Union([ApiKey, OAuthToken])

/** A credential. Make one by `ApiKey.make` or `OAuthToken.make`. */
export type Credential = typeof Credential.Type

/**
 * The way to renew a credential. `refresh` is given the one that is stored, and may take 30 seconds. Without
 * `isExpired`, an
 * `OAuthToken` is renewed when it has less than a minute left, and an `ApiKey` never.
 */
export interface Refresh<E, R> {
  readonly refresh: (credential: Credential) => Effect.Effect<Credential, E, R>
  readonly isExpired?: ((credential: Credential) => boolean) | undefined
}

/** See {@link CredentialStore}. */
export interface Service {
  /** Stores a credential, in place of the one that is there. */
  readonly set: (namespace: string, name: string, credential: Credential) => Effect.Effect<void, StoreError>
  /**
   * A credential, `undefined` if there is none. Fails with `WrongKey` if it was sealed with another key, or changed.
   */
  readonly get: (namespace: string, name: string) => Effect.Effect<Credential | undefined, StoreError>
  /**
   * A credential that is valid: the one that is stored, or a new one, if it is expired. One refresh runs at a time, in
   * all processes that share the storage; whoever asks meanwhile gets its result. If it fails, what was stored stays.
   * Fails with `NotFound`, with what `refresh` fails with, and with `TimedOut`.
   */
  readonly refreshed: <E, R>(
    namespace: string,
    name: string,
    options: Refresh<E, R>
  ) => Effect.Effect<Credential, StoreError | E, R>
  /** The names of all credentials of a namespace, at most 10,000. */
  readonly names: (namespace: string) => Effect.Effect<ReadonlyArray<string>, StoreError>
  /** Removes a credential; says whether it was there. */
  readonly remove: (namespace: string, name: string) => Effect.Effect<boolean, StoreError>
}

/**
 * The store of credentials. Namespaces and names are any text of 1 to 256 characters without control characters. Never
 * give a model a tool that reads from it: tools use credentials, and don't reveal them.
 */
export class CredentialStore extends Context.Service<CredentialStore, Service>()("effect-deepagents/CredentialStore") {}

const mostCharacters = 65_536
const refreshMillis = 30_000
/** Longer than a refresh, what comes after it, and what clocks of machines may differ. */
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

const corrupt: Fault = { reason: "Corrupt", problem: "it is no credential of this version of effect-deepagents" }

/** The data that a sealed credential is bound to. */
const additional = (namespace: string, name: string): Uint8Array =>
  new TextEncoder().encode(JSON.stringify(["effect-deepagents/credential", 1, namespace, name]))

/** The key of a store, and the algorithm that takes it. */
interface Cipher {
  readonly aead: Aead.Aead["Service"]
  readonly key: CredentialKey["Service"]
}

// No cause is passed on from here: it may quote what can't be encoded or decoded.
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
      aead.encrypt(key, new TextEncoder().encode(text), { nonce, aad: additional(namespace, name) }),
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
    const found = Result.getOrUndefined(decodeSealed(value))
    const nonce = Result.getOrUndefined(Base64.decode(found?.nonce ?? ""))
    const sealed = Result.getOrUndefined(Base64.decode(found?.sealed ?? ""))
    if (found === undefined || nonce === undefined || sealed === undefined) return yield* Effect.fail(corrupt)
    const bytes = yield* Effect.mapError(
      aead.decrypt(key, sealed, { nonce, aad: additional(namespace, name) }),
      (): Reason => ({ _tag: "WrongKey" })
    )
    const credential = Result.getOrUndefined(decodeCredential(new TextDecoder().decode(bytes)))
    return credential === undefined ? yield* Effect.fail(corrupt) : credential
  })

const failWith =
  (operation: string, namespace: string, name: string) =>
  (reason: Reason | Fault): StoreError =>
    failure(operation, `${namespace} ${name}`, reason)

const checked = Effect.fnUntraced(function* (namespace: string, name: string) {
  const problem = nameProblem(namespace, 256) ?? nameProblem(name, 256)
  if (problem !== undefined) return yield* Effect.fail<Reason>({ _tag: "InvalidName", problem })
})

/** The refreshed token may be the only one that is valid: storing it is tried again for about three seconds. */
const persistent = <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  Effect.retry(effect, {
    schedule: Schedule.exponential("50 millis").pipe(Schedule.upTo({ times: 6 })),
    while: ({ reason }) => reason === "Unavailable"
  })

/** The store, on the storage and with the key that you provide. */
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

    /** A credential, and the text that it is stored as. */
    const read = Effect.fnUntraced(function* (namespace: string, name: string) {
      const value = yield* credentials.get(namespace, name)
      return value === undefined ? undefined : { value, credential: yield* open(namespace, name, value) }
    })

    const existing = Effect.fnUntraced(function* (namespace: string, name: string) {
      return (yield* read(namespace, name)) ?? (yield* Effect.fail<Reason>({ _tag: "NotFound" }))
    })

    /** Takes the lease, if nobody has it: the text of it. */
    const lease = Effect.fnUntraced(function* (namespace: string, name: string) {
      const now = yield* Clock.currentTimeMillis
      const found = yield* leases.get(namespace, name)
      const held = Result.getOrUndefined(decodeLease(found ?? ""))
      if (held !== undefined && held.until > now) return undefined
      const mine = JSON.stringify({ owner: makeId(), until: now + leaseMillis })
      return (yield* leases.swap(namespace, name, found, mine)) ? mine : undefined
    })

    const refreshed: Service["refreshed"] = (namespace, name, { isExpired, refresh }) => {
      const fail = failWith("refresh", namespace, name)
      const reported = Effect.mapError(fail)
      const isOld = Effect.fnUntraced(function* (credential: Credential) {
        if (isExpired !== undefined) return isExpired(credential)
        const now = yield* Clock.currentTimeMillis
        return credential._tag === "OAuthToken" && (credential.expiresAt ?? Infinity) <= now + soonMillis
      })

      const renewed = Effect.fnUntraced(function* <E, R>(
        found: { readonly value: string; readonly credential: Credential },
        asked: Effect.Effect<Credential, E | StoreError, R>
      ) {
        const sealed = yield* reported(seal(namespace, name, yield* asked))
        const isStored = yield* reported(persistent(credentials.swap(namespace, name, found.value, sealed)))
        if (!isStored)
          yield* Effect.logDebug("A credential was replaced while it was refreshed; what was set last counts")
        return (yield* reported(existing(namespace, name))).credential
      })

      // The steps after a refresh are not interrupted: the old token may be void by then.
      const alone = Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const since = yield* Clock.currentTimeMillis
          for (;;) {
            const found = yield* reported(existing(namespace, name))
            if (!(yield* isOld(found.credential))) return found.credential
            const mine = yield* reported(lease(namespace, name))
            if (mine === undefined) {
              if ((yield* Clock.currentTimeMillis) - since > patienceMillis) {
                return yield* fail({ _tag: "TimedOut", millis: patienceMillis })
              }
              yield* restore(Effect.sleep("100 millis"))
              continue
            }
            const asked = Effect.timeoutOrElse(
              Effect.suspend(() => refresh(found.credential)),
              {
                duration: refreshMillis,
                orElse: () => Effect.fail(fail({ _tag: "TimedOut", millis: refreshMillis }))
              }
            )
            // Whoever had the lease before may have refreshed it since it was read.
            const again = Effect.flatMap(reported(existing(namespace, name)), (latest) =>
              latest.value === found.value ? renewed(found, restore(asked)) : Effect.undefined
            )
            const done = yield* Effect.ensuring(again, Effect.ignore(leases.swap(namespace, name, mine, undefined)))
            if (done !== undefined) return done
          }
        })
      )

      return Effect.andThen(
        reported(checked(namespace, name)),
        Effect.scoped(
          Effect.flatMap(RcMap.get(locks, JSON.stringify([namespace, name])), (lock) => lock.withPermits(1)(alone))
        )
      )
    }

    const within = <A>(
      door: string,
      operation: string,
      namespace: string,
      name: string,
      effect: Effect.Effect<A, Reason | Fault>
    ): Effect.Effect<A, StoreError> =>
      span(door)(
        Effect.mapError(Effect.andThen(checked(namespace, name), effect), failWith(operation, namespace, name))
      )

    return {
      refreshed: (namespace, name, options) => span("CredentialStore.refreshed")(refreshed(namespace, name, options)),
      set: (namespace, name, credential) =>
        within(
          "CredentialStore.set",
          "set",
          namespace,
          name,
          Effect.flatMap(seal(namespace, name, credential), (value) =>
            credentials.put(namespace, [{ key: name, value }])
          )
        ),
      get: (namespace, name) =>
        within(
          "CredentialStore.get",
          "get",
          namespace,
          name,
          Effect.map(read(namespace, name), (found) => found?.credential)
        ),
      names: (namespace) =>
        within(
          "CredentialStore.names",
          "list",
          namespace,
          "all",
          Effect.map(credentials.scan(namespace, { limit: 10_000 }), (rows) => rows.map((row) => row.key))
        ),
      remove: (namespace, name) =>
        within(
          "CredentialStore.remove",
          "remove",
          namespace,
          name,
          Effect.flatMap(credentials.get(namespace, name), (value) =>
            value === undefined ? Effect.succeed(false) : credentials.swap(namespace, name, value, undefined)
          )
        )
    }
  })
).pipe(Layer.provide(Layer.provide(Aead.layerWebCrypto, SecureRandom.layerWebCrypto)))
