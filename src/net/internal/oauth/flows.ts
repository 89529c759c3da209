/**
 * Sign-ins that were begun and wait for their callback: sealed in the store of credentials, so that any process can
 * finish them, and taken out by whoever does, once.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ApiKey, type CredentialStore } from "../../../stores/CredentialStore.ts"
import type { StoreError } from "../../../stores/StoreError.ts"
import { Server } from "../../../support/oauth/metadata.ts"

const namespace = "oauth sign-ins"

/** All that finishing needs. */
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

/** The beginning of a state: when it ends. What is over is found without opening it. */
export const prefixOf = (expiresAt: number): string => expiresAt.toString(36)

const endOf = (state: string): number => Number.parseInt(state.split(".")[0] ?? "", 36)

/** Keeps a sign-in, and clears away those that are over. */
export const put = Effect.fnUntraced(function* (credentials: CredentialStore["Service"], state: string, flow: Flow) {
  const now = yield* Clock.currentTimeMillis
  const old = (yield* credentials.names(namespace)).filter((name) => !(endOf(name) > now))
  yield* Effect.forEach(old, (name) => credentials.remove(namespace, name), { discard: true })
  const text = yield* Effect.orDie(encode(flow))
  yield* credentials.set(namespace, state, ApiKey.make({ key: Redacted.make(text) }))
})

/** Takes a sign-in out. Of several that try, one gets it. */
export const take = Effect.fnUntraced(function* (
  credentials: CredentialStore["Service"],
  state: string
): Effect.fn.Return<Flow | undefined, StoreError> {
  // A name that is not ours is none that the store must judge.
  if (!/^[0-9a-z]{1,11}\.[\w-]{20,100}$/.test(state)) return undefined
  const found = yield* credentials.get(namespace, state)
  if (found?._tag !== "ApiKey" || !(yield* credentials.remove(namespace, state))) return undefined
  if (!(endOf(state) > (yield* Clock.currentTimeMillis))) return undefined
  return Result.getOrUndefined(decode(Redacted.value(found.key)))
})

/** Forgets a sign-in that nobody finishes any more. */
export const drop = (credentials: CredentialStore["Service"], state: string): Effect.Effect<void> =>
  Effect.ignore(credentials.remove(namespace, state))
