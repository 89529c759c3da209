/** Verifies signatures of webhooks: HMAC-SHA256 over the raw body, in the forms of their senders. */
import * as Clock from "effect/Clock"
import * as Mac from "effect/crypto/Mac"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Hex from "effect/encoding/Hex"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { sha256 } from "../../support/store/hash.ts"
import { Problem } from "./http/problem.ts"

/** The form of the signatures of a sender. */
export interface Form {
  /** The header with the signatures. */
  readonly header: string
  /** The text between the parts of this header. Default: the header is one part. */
  readonly separator?: string | undefined
  /** The beginning of a part that is a signature. Other parts are ignored. Default: every part is one. */
  readonly prefix?: string | undefined
  readonly encoding: "hex" | "base64"
  /** The signed text, with `{body}`, `{timestamp}` and `{id}` in it. */
  readonly signed: string
  /** The header of the timestamp, in seconds since 1970; or the beginning of its part of the header of signatures, as `t=`. */
  readonly timestamp?: string | undefined
  /** The header of the id. */
  readonly id?: string | undefined
  /** The form of secrets: a text, or base64 behind `whsec_`. Default: `text`. */
  readonly secret?: "text" | "base64" | undefined
}

/** The form of GitHub. It signs neither a time nor an id: a delivery counts once by its body. */
export const gitHub: Form = {
  header: "x-hub-signature-256",
  prefix: "sha256=",
  encoding: "hex",
  signed: "{body}"
}

/** The form of Standard Webhooks. */
export const standard: Form = {
  header: "webhook-signature",
  separator: " ",
  prefix: "v1,",
  encoding: "base64",
  signed: "{id}.{timestamp}.{body}",
  timestamp: "webhook-timestamp",
  id: "webhook-id",
  secret: "base64"
}

/** The form of Stripe. It signs no id: name the one in the payload by `id` of the input. */
export const stripe: Form = {
  header: "stripe-signature",
  separator: ",",
  prefix: "v1=",
  encoding: "hex",
  signed: "{timestamp}.{body}",
  timestamp: "t="
}

type Headers = Readonly<Record<string, string | undefined>>

/** The most signatures of a delivery. */
const most = 8

const encoder = new TextEncoder()

/** Finds the problem of a form. */
const problemOf = ({ id, signed, timestamp }: Form): string | undefined => {
  if (signed.split("{body}").length !== 2) return "`form.signed` must have {body} once"
  if (signed.includes("{timestamp}") !== (timestamp !== undefined))
    return "`form.timestamp` and {timestamp} in `form.signed` belong together"
  return signed.includes("{id}") === (id !== undefined)
    ? undefined
    : "`form.id` and {id} in `form.signed` belong together"
}

/** Gives the bytes of a secret, or none for a malformed one. */
export const keyBytes = ({ secret }: Form, redacted: Redacted.Redacted): Uint8Array | undefined => {
  const text = Redacted.value(redacted)
  if (secret !== "base64") return encoder.encode(text)
  return Result.getOrUndefined(Base64.decode(text.replace(/^whsec_/, "")))
}

/** The fewest bytes of a secret. */
export const shortest = 8

const refused = new Problem({
  status: 401,
  code: "Signature",
  detail: "The signature is missing or wrong. Check the secret, and send the body as it was signed."
})

const timestampProblem = new Problem({
  status: 401,
  code: "Timestamp",
  detail: "The signed time is too far from now. Check the clocks, and sign anew before sending again."
})

const join = (before: string, body: Uint8Array, after: string): Uint8Array => {
  const [head, tail] = [encoder.encode(before), encoder.encode(after)]
  const whole = new Uint8Array(head.length + body.length + tail.length)
  whole.set(head)
  whole.set(body, head.length)
  whole.set(tail, head.length + body.length)
  return whole
}

/**
 * Makes the check of deliveries, or fails with the problem of the form or of its secrets. The check gives the id of a
 * delivery: the signed one, or else the digest of the body, since nothing else says that it is another one.
 */
export const makeVerify = Effect.fnUntraced(
  function* (form: Form, secrets: ReadonlyArray<Redacted.Redacted>, tolerance: number) {
    const problem = problemOf(form)
    if (problem !== undefined) return yield* Effect.fail(problem)
    if (secrets.length === 0) return yield* Effect.fail("`secrets` must have the secret of the sender")
    const mac = yield* Mac.Mac
    const keys = yield* Effect.forEach(secrets, (secret) => {
      const bytes = keyBytes(form, secret)
      return bytes === undefined || bytes.length < shortest
        ? Effect.fail(`a secret must be ${form.secret === "base64" ? "base64 of " : ""}at least ${shortest} bytes`)
        : Effect.orDie(Mac.key(Mac.hmacSha256, bytes))
    })
    const [before = "", after = ""] = form.signed.split("{body}")
    const decode = form.encoding === "hex" ? Hex.decode : Base64.decode

    return Effect.fnUntraced(function* (headers: Headers, body: Uint8Array<ArrayBuffer>) {
      const header = headers[form.header.toLowerCase()] ?? ""
      const parts = form.separator === undefined ? [header] : header.split(form.separator)
      const find = (prefix: string): ReadonlyArray<string> =>
        parts.flatMap((part) => {
          const text = part.trim()
          return text.startsWith(prefix) ? [text.slice(prefix.length)] : []
        })
      const { id: idName = "", timestamp: timeName = "" } = form
      const time = (timeName.endsWith("=") ? find(timeName)[0] : headers[timeName.toLowerCase()]) ?? ""
      const id = headers[idName.toLowerCase()] ?? ""
      if (timeName !== "" && !/^\d{1,12}$/.test(time)) return yield* refused
      if (idName !== "" && id === "") return yield* refused
      const fill = (text: string): string =>
        text.replaceAll(/\{(id|timestamp)\}/g, (_, name) => (name === "id" ? id : time))
      const signed = join(fill(before), body, fill(after))
      const tags = find(form.prefix ?? "").flatMap((text) => {
        const tag = Result.getOrUndefined(decode(text))
        return tag === undefined ? [] : [tag]
      })
      let isSigned = false
      for (const tag of tags.slice(0, most)) {
        for (const key of keys) isSigned ||= yield* Effect.orElseSucceed(mac.verify(key, tag, signed), () => false)
      }
      if (!isSigned) return yield* refused
      const now = yield* Clock.currentTimeMillis
      if (timeName !== "" && !(Math.abs(now - Number(time) * 1_000) <= tolerance)) return yield* timestampProblem
      return idName === "" ? yield* sha256(body) : id
    })
  },
  Effect.provide(Layer.provideMerge(Mac.layerWebCrypto, SecureRandom.layerWebCrypto))
)
