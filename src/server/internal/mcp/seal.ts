/** Seals state that a client carries between requests. Nobody can forge it, change it, or use it for another call. */
import * as Clock from "effect/Clock"
import * as Mac from "effect/crypto/Mac"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type JsonObject } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { sha256 } from "../../../support/store/hash.ts"

const State = Schema.fromJsonString(
  Schema.Struct({
    run: Schema.String,
    ask: Schema.String,
    tool: Schema.String,
    arguments: Schema.String,
    until: Schema.Finite
  })
)
const decode = Schema.decodeUnknownResult(State)

/** The waiting run and its question. */
export interface WaitingRun {
  readonly run: string
  readonly ask: string
}

/** Makes seals with a fresh key. No other process has the key, nor the runs. */
export const make = Effect.gen(function* () {
  const mac = yield* Mac.Mac
  const key = yield* Effect.orDie(Mac.key(Mac.hmacSha256, SecureRandom.randomBytesUnsafe(32)))
  const bytes = (text: string) => new TextEncoder().encode(text)

  /** Seals a question of a call. */
  const seal = Effect.fnUntraced(function* (waiting: WaitingRun, tool: string, args: JsonObject, until: number) {
    const text = JSON.stringify({ ...waiting, tool, arguments: yield* sha256(canonical(args)), until })
    const tag = yield* Effect.orDie(mac.sign(key, bytes(text)))
    return `${Base64Url.encode(text)}.${Base64Url.encode(tag)}`
  })

  /** Opens a seal of this call. Returns `undefined` for any other text. */
  const open = Effect.fnUntraced(function* (sealed: string, tool: string, args: JsonObject) {
    const [body = "", tag = ""] = sealed.split(".")
    const text = Result.getOrUndefined(Base64Url.decodeString(body))
    const signature = Result.getOrUndefined(Base64Url.decode(tag))
    if (text === undefined || signature === undefined) return undefined
    // The last character has unused bits. Only one spelling of a seal is valid.
    if (Base64Url.encode(text) !== body || Base64Url.encode(signature) !== tag) return undefined
    if (!(yield* Effect.orElseSucceed(mac.verify(key, signature, bytes(text)), () => false))) return undefined
    const state = Result.getOrUndefined(decode(text))
    const isOurs =
      state !== undefined &&
      state.tool === tool &&
      state.arguments === (yield* sha256(canonical(args))) &&
      state.until > (yield* Clock.currentTimeMillis)
    return isOurs ? { run: state.run, ask: state.ask } : undefined
  })

  return { seal, open }
}).pipe(Effect.provide(Mac.layerWebCrypto), Effect.provide(SecureRandom.layerWebCrypto))
