/** Stores pending sign-ins, encrypted in the credential store. Any process can complete a sign-in, once. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ApiKey, type CredentialStore } from "../../../stores/CredentialStore.ts"
import type { StoreError } from "../../../stores/StoreError.ts"
import { Server } from "../../../support/oauth/metadata.ts"

const namespace = "oauth sign-ins"

/** The data that completes a sign-in. */
export const Flow = Schema.Struct({
  provider: Schema.String,
  account: Schema.String,
  tenant: Schema.String,
  name: Schema.String,
  server: Server,
  client: Schema.Struct({
    id: Schema.String,
    secret: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
    authentication: Schema.optionalKey(Schema.Literals(["basic", "post"]))
  }),
  asked: Schema.Array(Schema.String),
  redirect: Schema.String,
  verifier: Schema.String
})
export type Flow = typeof Flow.Type

const FlowText = Schema.fromJsonString(Flow)
const encode = Schema.encodeEffect(FlowText)
const decode = Schema.decodeUnknownResult(FlowText)

/** Makes the prefix of a state: its expiry, readable without decryption. */
export const prefixOf = (expiresAt: number): string => expiresAt.toString(36)

const expiryOf = (state: string): number => Number.parseInt(state.split(".")[0] ?? "", 36)

/** Stores a sign-in, and removes expired ones. */
export const storeFlow = Effect.fnUntraced(function* (
  credentials: CredentialStore["Service"],
  state: string,
  flow: Flow
) {
  const now = yield* Clock.currentTimeMillis
  const old = (yield* credentials.names(namespace)).filter((name) => !(expiryOf(name) > now))
  yield* Effect.forEach(old, (name) => credentials.remove(namespace, name), { discard: true })
  const text = yield* Effect.orDie(encode(flow))
  yield* credentials.set(namespace, state, ApiKey.make({ key: Redacted.make(text) }))
})

/** Removes and returns a sign-in. Only one of several callers gets it. */
export const takeFlow = Effect.fnUntraced(function* (
  credentials: CredentialStore["Service"],
  state: string
): Effect.fn.Return<Flow | undefined, StoreError> {
  // An invalid state never reaches the store.
  if (!/^[0-9a-z]{1,11}\.[\w-]{20,100}$/.test(state)) return undefined
  const credential = yield* credentials.get(namespace, state)
  if (credential?._tag !== "ApiKey" || !(yield* credentials.remove(namespace, state))) return undefined
  if (!(expiryOf(state) > (yield* Clock.currentTimeMillis))) return undefined
  return Result.getOrUndefined(decode(Redacted.value(credential.key)))
})

/** Removes an abandoned sign-in. */
export const removeFlow = (credentials: CredentialStore["Service"], state: string): Effect.Effect<void> =>
  Effect.ignore(credentials.remove(namespace, state))
