/**
 * The key that encrypts credentials: from the keychain of the operating system, or from `Config`.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
 *
 * const credentials = CredentialStore.layer.pipe(
 *   Layer.provide([
 *     CredentialKey.layerKeychain({ service: "my-app" }),
 *     Storage.layerFile({ folder: "credentials", fsync: true })
 *   ]),
 *   Layer.provide(NodeServices.layer)
 * )
 * ```
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Aead from "effect/crypto/Aead"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { makeLayerCheck } from "../support/options/check.ts"
import { failure } from "./internal/failure.ts"
import * as Keychain from "./internal/keychain.ts"
import * as shapes from "./internal/shapes.ts"
import type { StoreError } from "./StoreError.ts"

/** A key for AES-256-GCM. It can't be printed. */
export class CredentialKey extends Context.Service<CredentialKey, Aead.Key<Aead.AesGcm>>()(
  "effect-deepagents/CredentialKey"
) {}

const noKey = (problem: string): StoreError => failure("open", "credential key", { _tag: "NoKey", problem })

const random = Effect.sync(() => SecureRandom.randomBytesUnsafe(Aead.aes256Gcm.keyLength))

const fromBytes = (bytes: Uint8Array, problem: string): Effect.Effect<Aead.Key<Aead.AesGcm>, StoreError> =>
  Effect.mapError(Aead.key(Aead.aes256Gcm, bytes), () => noKey(problem))

const fromText = (text: Redacted.Redacted, problem: string): Effect.Effect<Aead.Key<Aead.AesGcm>, StoreError> =>
  Result.match(Base64.decode(Redacted.value(text).trim()), {
    onFailure: () => Effect.fail(noKey(problem)),
    onSuccess: (bytes) => fromBytes(bytes, problem)
  })

/**
 * Reads the key from `Config`, by default from `CREDENTIAL_KEY`: 32 random bytes as base 64, made by
 * `openssl rand -base64 32`. Fails with `NoKey`.
 */
export const layerConfig = (
  config: Config.Config<Redacted.Redacted> = Config.Redacted("CREDENTIAL_KEY")
): Layer.Layer<CredentialKey, StoreError> =>
  Layer.effect(
    CredentialKey,
    Effect.flatMap(
      Effect.mapError(config, () =>
        noKey(
          "the configuration has none; set it (CREDENTIAL_KEY, unless you gave another config) to 32 random bytes as base 64, made by: openssl rand -base64 32"
        )
      ),
      (text) =>
        fromText(text, "what the configuration has is not 32 bytes as base 64; make one by: openssl rand -base64 32")
    )
  )

const refuseLayerKeychain = makeLayerCheck("CredentialKey.layerKeychain", shapes.credentialKeyLayerKeychain)

/**
 * Keeps the key in the user's keychain: by `security` on macOS, by `secret-tool` (of libsecret) on Linux. The first
 * process makes a random key; start no other one at the same moment, because they may not agree. `service` is the name
 * of your application: letters, digits, `.`, `_` and `-`.
 *
 * Fails with `NoKey` without a keychain. Use {@link layerConfig} on servers and in containers.
 */
export const layerKeychain = (options: {
  /** The name of your application: letters, digits, `.`, `_` and `-`. */
  readonly service: string
}): Layer.Layer<CredentialKey, StoreError, ChildProcessSpawner> =>
  refuseLayerKeychain(options) ??
  Layer.effect(
    CredentialKey,
    Effect.gen(function* () {
      const keyText = yield* Effect.mapError(
        Keychain.getOrPut(
          options.service,
          Effect.map(random, (bytes) => Redacted.make(Base64.encode(bytes)))
        ),
        noKey
      )
      const problem = `what the keychain has for ${options.service} is no key; remove it there, and start again`
      return yield* fromText(keyText, problem)
    })
  )

/** A random key that ends with the process: for credentials in memory, and for tests. */
export const layerRandom: Layer.Layer<CredentialKey, StoreError> = Layer.effect(
  CredentialKey,
  Effect.flatMap(random, (bytes) => fromBytes(bytes, "there are no random numbers"))
)
