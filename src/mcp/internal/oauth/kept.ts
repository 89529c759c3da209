/** The sealed records of one server: its tokens, its authorization server, the registered client, the key of proofs. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { ApiKey, type OAuthToken, type CredentialStore } from "../../../stores/CredentialStore.ts"
import type { KeyPair } from "../../../support/oauth/keys.ts"
import { Server } from "../../../support/oauth/metadata.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { cut } from "../../../support/text/text.ts"
import type { McpError } from "../../McpError.ts"

/** A token of a server. */
export type Token = typeof OAuthToken.Type

/** The authorization server of an MCP server, and the resource that tokens are asked for. */
export const Place = Schema.Struct({
  server: Server,
  resource: Schema.optionalKey(Schema.String),
  scopes: Schema.optionalKey(Schema.Array(Schema.String))
})
export type Place = typeof Place.Type

/** A client that was registered at an issuer, with its redirect address. */
const Registered = Schema.Struct({
  id: Schema.String,
  secret: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
  authentication: Schema.optionalKey(Schema.Literals(["basic", "post"])),
  issuer: Schema.String,
  redirect: Schema.optionalKey(Schema.String)
})

const algorithm = { name: "ECDSA", namedCurve: "P-256" }

const Jwk = Schema.Record(Schema.String, Schema.Unknown)
const Pair = Schema.Struct({ privateJwk: Jwk, publicJwk: Jwk })

/** Makes the access to the records of a server. */
export const make = (
  credentials: CredentialStore["Service"],
  tenant: string,
  serverUrl: string,
  onError: (error: unknown) => McpError
) => {
  const base = `mcp ${cut(new URL(serverUrl).origin, 150)} ${sha256Sync(serverUrl).slice(0, 16)}`
  const tokensName = `${base} tokens`

  const record = <A>(kind: string, schema: Schema.Codec<A, unknown>) => {
    const name = `${base} ${kind}`
    const json = Schema.fromJsonString(schema)
    const get = Effect.gen(function* () {
      const entry = yield* Effect.mapError(credentials.get(tenant, name), onError)
      if (entry?._tag !== "ApiKey") return undefined
      // A record of another version counts as missing.
      return yield* Effect.catch(Schema.decodeUnknownEffect(json)(Redacted.value(entry.key)), () => Effect.undefined)
    })
    const write = Effect.fnUntraced(function* (value: A) {
      const text = yield* Effect.orDie(Schema.encodeEffect(json)(value))
      yield* Effect.mapError(credentials.set(tenant, name, ApiKey.make({ key: Redacted.make(text) })), onError)
    })
    const forget = Effect.mapError(credentials.remove(tenant, name), onError)
    return { get, set: write, forget }
  }

  const pair = record("key", Pair)
  /** The key pair of proofs, if there is one. */
  const getKey = Effect.gen(function* () {
    const keyPair = yield* pair.get
    if (keyPair === undefined) return undefined
    const load = (jwk: Readonly<Record<string, unknown>>, usage: "sign" | "verify") =>
      crypto.subtle.importKey("jwk", jwk, algorithm, true, [usage])
    const loaded = Promise.all([load({ ...keyPair.privateJwk }, "sign"), load({ ...keyPair.publicJwk }, "verify")])
    const [privateKey, publicKey] = yield* Effect.tryPromise({ try: () => loaded, catch: onError })
    return { privateKey, publicKey }
  })
  const setKey = Effect.fnUntraced(function* ({ privateKey, publicKey }: KeyPair) {
    const [privateJwk, publicJwk] = yield* Effect.tryPromise({
      try: () => Promise.all([crypto.subtle.exportKey("jwk", privateKey), crypto.subtle.exportKey("jwk", publicKey)]),
      catch: onError
    })
    yield* pair.set({ privateJwk: { ...privateJwk }, publicJwk: { ...publicJwk } })
  })

  const tokens = Effect.map(Effect.mapError(credentials.get(tenant, tokensName), onError), (entry) =>
    entry?._tag === "OAuthToken" ? entry : undefined
  )
  const setTokens = (token: Token) => Effect.mapError(credentials.set(tenant, tokensName, token), onError)

  /** Replaces the token that a server refused, once for all processes. */
  const renewTokens = <E>(used: string | undefined, refresh: (old: Token) => Effect.Effect<Token, E>) =>
    credentials.refreshed(tenant, tokensName, {
      isExpired: (one) => one._tag === "OAuthToken" && Redacted.value(one.accessToken) === used,
      refresh: (old) => (old._tag === "OAuthToken" ? refresh(old) : Effect.succeed(old))
    })

  return {
    tokens,
    setTokens,
    renewTokens,
    place: record("discovery", Place),
    client: record("client", Registered),
    key: { get: getKey, set: setKey }
  }
}
