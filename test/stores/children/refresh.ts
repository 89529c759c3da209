/** Asks for a token that is expired, of a server that counts how often it is asked, and takes its time. */
import { appendFileSync } from "node:fs"
import { CredentialKey, CredentialStore } from "effect-deepagents/stores"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { storage } from "./storage.ts"

const [kind = "", path = "", name = ""] = process.argv.slice(2)

const key = CredentialKey.layerConfig(Config.Redacted("K")).pipe(
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ K: Buffer.alloc(32, 1).toString("base64") })))
)

const program = Effect.gen(function* () {
  const store = yield* CredentialStore.CredentialStore
  const credential = yield* store.refreshed("ada", "calendar", {
    refresh: () =>
      Effect.gen(function* () {
        appendFileSync(`${path}/asked`, `${name}\n`)
        yield* Effect.sleep("300 millis")
        return CredentialStore.OAuthToken.make({
          accessToken: Redacted.make(`token of ${name}`),
          expiresAt: Date.now() + 3_600_000
        })
      })
  })
  if (credential._tag === "OAuthToken") console.log(Redacted.value(credential.accessToken))
})

await Effect.runPromise(Effect.provide(program, Layer.provide(CredentialStore.layer, [key, storage(kind, path)])))
