/**
 * Sign checkpoints and decisions on their way through untrusted hands, and refuse changed ones.
 *
 * With a key in the context of its runs, each thread with pending requests is signed: an HMAC (SHA-256), bound to the
 * thread, covers the turn, the requests with their tools and arguments, the decisions, and the state. Resuming a changed
 * thread fails with a `SessionError` (`Tampered`, in an `AgentError`). For a browser, a queue or a mail, {@link seal} and
 * {@link open} sign checkpoints, {@link sign} and {@link verify} decisions.
 *
 * ```ts
 * import { Config, Effect, Layer } from "effect"
 * import { Agent, Approval } from "effect-deepagents"
 * import { Tamper } from "effect-deepagents/rules"
 *
 * declare const agent: Agent.Agent<string | undefined, never, never>
 *
 * const key = Layer.unwrap(Effect.map(Config.Redacted("SIGNING_KEY"), Tamper.layer))
 *
 * const program = Effect.gen(function* () {
 *   const first = yield* Agent.run(agent, "Pay what is due")
 *   const sealed = yield* Tamper.seal(first, "thread-1")
 *   // … shown elsewhere, where somebody decides
 *   const [request] = first.pending
 *   if (request === undefined) return first
 *   const signed = yield* Tamper.sign(Approval.approve(request), request, "thread-1")
 *   // … and back
 *   const checkpoint = yield* Tamper.open(sealed, "thread-1")
 *   const decision = yield* Tamper.verify(signed, request, "thread-1")
 *   return yield* Agent.resume(agent, { checkpoint, decisions: [decision] })
 * }).pipe(Effect.provide(key))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Approval from "../core/Approval.ts"
import * as Checkpoint from "../core/Checkpoint.ts"
import { Json } from "../core/Json.ts"
import type { InvalidEncoding } from "../core/schema/encoding.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import { SigningKey } from "../core/thread/signingKey.ts"
import { TaggedError } from "../support/effect/taggedError.ts"

export { SigningKey }

/** A signature does not fit: something changed, or it is of another key, thread or request. */
export class Tampered extends TaggedError<Tampered>()("Tampered", {
  what: Schema.Literals(["checkpoint", "decision"]),
  threadId: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The ${this.what} of the thread ${JSON.stringify(this.threadId)} is refused: ${this.problem}. Take it from where it was signed, or have it made again.`
  }
}

/** The shortest secret, in characters. */
const minLength = 16

/** A secret is so short that somebody could guess it. `position` is its place among the secrets, 0 for the first. */
export class SecretTooShort extends TaggedError<SecretTooShort>()("SecretTooShort", {
  position: Schema.Int,
  length: Schema.Int,
  needed: Schema.Int
}) {
  override get message(): string {
    const which = this.position === 0 ? "The secret to sign with" : `The older secret ${this.position}`
    return `${which} has ${this.length} characters, and must have at least ${this.needed}. Make one at random: \`openssl rand -base64 32\`.`
  }
}

const algorithm = { name: "HMAC", hash: "SHA-256" }

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

/** Makes the key of secrets with at least 16 characters each. The first signs; signatures of all are accepted. */
export const layer = (
  secret: Redacted.Redacted<string>,
  ...older: ReadonlyArray<Redacted.Redacted<string>>
): Layer.Layer<SigningKey, SecretTooShort> =>
  Layer.effect(
    SigningKey,
    Effect.gen(function* () {
      const make = (one: Redacted.Redacted<string>, position: number) => {
        const text = Redacted.value(one)
        const { length } = text
        return length < minLength
          ? Effect.fail(new SecretTooShort({ position, length, needed: minLength }))
          : Effect.promise(() =>
              globalThis.crypto.subtle.importKey("raw", bytes(text), algorithm, false, ["sign", "verify"])
            )
      }
      const first = yield* make(secret, 0)
      const keys = [first, ...(yield* Effect.forEach(older, (one, index) => make(one, index + 1)))]
      return {
        sign: (text) =>
          Effect.map(
            Effect.promise(() => globalThis.crypto.subtle.sign("HMAC", first, bytes(text))),
            (mac) => Hex.encode(new Uint8Array(mac))
          ),
        isSigned: (text, mac) => {
          const decoded = Result.map(Hex.decode(mac), (array) => new Uint8Array(array))
          return Result.isFailure(decoded)
            ? Effect.succeed(false)
            : Effect.map(
                Effect.forEach(keys, (key) =>
                  // It compares in constant time.
                  Effect.promise(() => globalThis.crypto.subtle.verify("HMAC", key, decoded.success, bytes(text)))
                ),
                (results) => results.includes(true)
              )
        }
      }
    })
  )

const Sealed = Schema.Struct({ checkpoint: Json, mac: Schema.String })

const textOf = (what: Tampered["what"], threadId: string, body: Json): string => canonical([what, 1, threadId, body])

/** Encodes a checkpoint as JSON, signed for a thread. Any text can name the thread. */
export const seal = Effect.fnUntraced(function* (
  checkpoint: Checkpoint.Checkpoint,
  threadId: string
): Effect.fn.Return<Json, never, SigningKey> {
  const { sign } = yield* SigningKey
  // The round trip gives the JSON that `open` will read.
  const body: Json = JSON.parse(JSON.stringify(Checkpoint.encode(checkpoint)))
  return { checkpoint: body, mac: yield* sign(textOf("checkpoint", threadId, body)) }
})

/** Decodes a checkpoint with a seal for this thread. */
export const open = Effect.fnUntraced(function* (
  sealed: unknown,
  threadId: string
): Effect.fn.Return<Checkpoint.Checkpoint, Tampered | InvalidEncoding, SigningKey> {
  const { isSigned } = yield* SigningKey
  const refuse = (problem: string) => Effect.fail(new Tampered({ what: "checkpoint", threadId, problem }))
  const result = Schema.decodeUnknownResult(Sealed)(sealed)
  if (Result.isFailure(result)) return yield* refuse("it has no signature")
  const { checkpoint, mac } = result.success
  if (!(yield* isSigned(textOf("checkpoint", threadId, checkpoint), mac))) {
    return yield* refuse("its signature is not of what it says, or of another thread or key")
  }
  return yield* Checkpoint.decode(checkpoint)
})

const Signed = Schema.Struct({ decision: Approval.Decision, mac: Schema.String })
/** A decision with its signature. */
export interface SignedDecision extends Schema.Schema.Type<typeof Signed> {}

const encodeDecision = Schema.encodeSync(Schema.toCodecJson(Approval.Decision))

const decisionText = (decision: Approval.Decision, request: Approval.Request, threadId: string): string =>
  textOf("decision", threadId, [
    request.id,
    request.toolName,
    request.toolDigest ?? null,
    request.arguments,
    Approval.digest(request),
    encodeDecision(decision)
  ])

/** Signs a decision on a request of this thread, with its principal (`by`) and its time. */
export const sign = (
  decision: Approval.Decision,
  request: Approval.Request,
  threadId: string
): Effect.Effect<SignedDecision, never, SigningKey> =>
  SigningKey.use((key) => Effect.map(key.sign(decisionText(decision, request, threadId)), (mac) => ({ decision, mac })))

/** Decodes a decision that is signed for this request with its present tool, arguments and description. */
export const verify = Effect.fnUntraced(function* (
  signed: unknown,
  request: Approval.Request,
  threadId: string
): Effect.fn.Return<Approval.Decision, Tampered, SigningKey> {
  const { isSigned } = yield* SigningKey
  const refuse = (problem: string) => Effect.fail(new Tampered({ what: "decision", threadId, problem }))
  const result = Schema.decodeUnknownResult(Signed)(signed)
  if (Result.isFailure(result)) return yield* refuse("it is no decision with a signature")
  const { decision, mac } = result.success
  return (yield* isSigned(decisionText(decision, request, threadId), mac))
    ? decision
    : yield* refuse("its signature is of another request, thread or key, or it was changed")
})
