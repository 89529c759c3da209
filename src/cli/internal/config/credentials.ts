/** Keys of providers: in the keychain of the system, else in a sealed file with its key beside it. */
import { join } from "node:path"
import * as Config from "effect/Config"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as CredentialKey from "../../../stores/CredentialKey.ts"
import * as CredentialStore from "../../../stores/CredentialStore.ts"
import * as Storage from "../../../stores/Storage.ts"
import { orFail } from "../failure.ts"
import type { Places } from "./places.ts"
import { makePrivate } from "./trust.ts"

/** The namespace of keys and tokens of providers. */
export const namespace = "providers"

/** The namespace of the tokens of servers, by their origins. */
export const servers = "servers"

const folderOf = ({ data }: Places): string => join(data, "credentials")

/** Reads or makes the key of the sealed file. An existing key is never replaced. */
const keyOf = (places: Places) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = join(folderOf(places), "key")
      const inFile = orFail("failed")(Effect.map(fs.readFileString(file), (text) => sealedWith(text)))
      if (yield* Effect.orElseSucceed(fs.exists(file), () => false)) return yield* inFile
      const newKey = Effect.suspend(() =>
        Effect.andThen(makePrivate(file, Base64.encode(SecureRandom.randomBytesUnsafe(32))), inFile)
      )
      const keychain = CredentialKey.layerKeychain({ service: "deepagents" })
      return Layer.catch(keychain, () => Layer.unwrap(newKey))
    })
  )

const sealedWith = (text: string) => CredentialKey.layerConfig(Config.succeed(Redacted.make(text.trim())))

/** The store of the user's keys and tokens. */
export const credentials = (places: Places) =>
  CredentialStore.layer.pipe(
    Layer.provide([keyOf(places), Storage.layerFile({ folder: join(folderOf(places), "sealed"), fsync: true })])
  )

const withStore = <A, E extends { readonly message: string }>(
  places: Places,
  use: (store: CredentialStore.CredentialStore["Service"]) => Effect.Effect<A, E>
) => orFail("failed")(Effect.provide(CredentialStore.CredentialStore.use(use), credentials(places)))

/** Reports whether the store has any entry. Opening it would ask the keychain. */
export const hasKept = Effect.fnUntraced(function* (places: Places) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.orElseSucceed(fs.exists(join(folderOf(places), "sealed")), () => false)
})

/** The stored key of a provider, or the token of a server. */
export const keptKey = Effect.fnUntraced(function* (places: Places, name: string, of = namespace) {
  if (!(yield* hasKept(places))) return undefined
  const credential = yield* withStore(places, (store) => store.get(of, name))
  return credential?._tag === "ApiKey" ? credential.key : undefined
})

/** The stored credentials by the names of providers. A token comes from a sign-in with ChatGPT. */
export const keptKinds = Effect.fnUntraced(function* (places: Places) {
  if (!(yield* hasKept(places))) return new Map<string, "kept" | "chatgpt">()
  return yield* withStore(
    places,
    Effect.fnUntraced(function* (store) {
      const names = yield* store.names(namespace)
      const openai = names.includes("openai")
        ? yield* Effect.orElseSucceed(store.get(namespace, "openai"), () => undefined)
        : undefined
      const kindOf = (name: string) => (name === "openai" && openai?._tag === "OAuthToken" ? "chatgpt" : "kept")
      return new Map<string, "kept" | "chatgpt">(names.map((name) => [name, kindOf(name)]))
    })
  )
})

export const keepKey = (places: Places, name: string, key: Redacted.Redacted, of = namespace) =>
  withStore(places, (store) => store.set(of, name, CredentialStore.ApiKey.make({ key })))

export const forgetKey = (places: Places, name: string, of = namespace) =>
  withStore(places, (store) => store.remove(of, name))
