/** One run's line to a Claude model, over whatever transport. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { fromAsyncIterable, type ModelRequest, type ModelSession, type TurnPart } from "../../../core/ChatModel.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import { isObject } from "../../../core/Json.ts"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import type { Usage } from "../../../core/Usage.ts"
import { decodeTurn } from "../turn/decodeTurn.ts"
import { makeMediaWarner } from "../turn/media.ts"
import { type Origin, reservedParameter } from "../wire/errors.ts"
import { patiently } from "../wire/patience.ts"
import { textsOf } from "../wire/secrets.ts"
import { makeSchemaWarner, warned } from "../wire/warned.ts"
import { makeDecoder } from "./decode.ts"
import { faultError, isMovedThinking, requestError } from "./failure.ts"
import { makeEncoder, type Encoding } from "./request.ts"
import type { Body } from "./wire.ts"

/** Sends a request and gives the events of the answer, parsed as JSON and not checked. */
export type Send = (
  body: Body,
  betas: ReadonlyArray<string>,
  signal: AbortSignal,
  token?: string
) => Promise<AsyncIterable<unknown>>

/** The parts of a session. `secrets` must not be in any error; `idle` is how long to wait for
 * an event (milliseconds); `priced` puts a price on usage. */
export interface Setup {
  readonly provider: string
  readonly encoding: Encoding
  readonly send: Send
  readonly secrets: ReadonlyArray<string>
  readonly idle: number
  readonly priced: (usage: Usage) => Usage
  /** The access token of a request, if each has its own. */
  readonly accessToken?: Effect.Effect<Redacted.Redacted, ModelError> | undefined
}

/** Time that is given to the end of the HTTP response behind the end of the answer, so that the connection is kept. */
const lingering = 200

/** Reads the rest of the stream after the answer for a short time, and ignores its content and failures. */
const linger = (iterator: AsyncIterator<unknown>, giveUp: () => void): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(giveUp, lingering)
    const over = (): void => {
      clearTimeout(timer)
      resolve()
    }
    const drain = (): void => {
      iterator.next().then(({ done: ended }) => (ended === true ? over() : drain()), over)
    }
    drain()
  })

const done = { done: true, value: undefined } as const

/** A reason that costs nothing to make: without one, `abort()` makes an exception with a stack trace. */
const gone = "nobody reads this answer any more"

/**
 * The events up to the end of the answer. Who leaves before it ends the request; who leaves after it does not, and what
 * happens to the connection then does not matter any more.
 */
const untilStop = (
  left: AbortSignal,
  open: (signal: AbortSignal) => Promise<AsyncIterable<unknown>>
): AsyncIterable<unknown> => ({
  [Symbol.asyncIterator]: () => {
    const request = new AbortController()
    let iterator: AsyncIterator<unknown> | undefined
    let over: Promise<void> | undefined
    left.addEventListener("abort", () => {
      if (over === undefined) request.abort(gone)
    })
    return {
      next: async () => {
        if (over !== undefined) return over.then(() => done)
        iterator ??= (await open(request.signal))[Symbol.asyncIterator]()
        const event = await iterator.next()
        if (isObject(event.value) && event.value["type"] === "message_stop") {
          over = linger(iterator, () => request.abort(gone))
        }
        return event
      },
      return: () => {
        // The SDK's own iterator ends with the request.
        if (over === undefined) request.abort(gone)
        return Promise.resolve(done)
      }
    }
  }
})

/** Gives the texts of the conversation: they must not be in an error. */
export function* saidIn({ messages, systemPrompt }: Pick<ModelRequest, "messages" | "systemPrompt">): Iterable<string> {
  yield systemPrompt
  for (const message of messages) {
    yield* textsOf(message.content, "request")
    if (message.role !== "ai") continue
    for (const call of message.toolCalls) yield* textsOf(call.arguments, "arguments")
    for (const call of message.malformedToolCalls) yield call.raw
  }
}

const bindingBeta = "thinking-binding-controls-2026-08-01"

/** The same request, with thinking dropped that belongs to a conversation which reads differently now. */
const dropMovedThinking = (body: Body): Body => {
  const { thinking = { type: "adaptive" } } = body
  return { ...body, thinking: { ...thinking, block_binding: { prefix_mismatch_behavior: "drop_block" } } }
}

/** Opens a session. */
export const makeSession = ({ accessToken, encoding, idle, priced, provider, secrets, send }: Setup): ModelSession => {
  const encode = makeEncoder(encoding)
  const known = new Set<string>()
  const warn = makeSchemaWarner({ provider, model: encoding.model })
  const warnOfMedia = makeMediaWarner()
  let dropping = false

  const nextTurn = Effect.fnUntraced(function* (request: ModelRequest) {
    const makeId = yield* IdGenerator
    const encoded = encode(request)
    if (Result.isFailure(encoded)) return yield* reservedParameter(provider, encoding.model, encoded.failure)
    const { betas, body, damaged, names, removed } = encoded.success
    const token = accessToken === undefined ? undefined : Redacted.value(yield* accessToken)
    const origin: Origin = {
      provider,
      model: encoding.model,
      secrets: token === undefined ? secrets : [...secrets, token],
      said: () => saidIn(request)
    }
    const attempt = (signal: AbortSignal): Promise<AsyncIterable<unknown>> =>
      dropping
        ? send(dropMovedThinking(body), [...betas, bindingBeta], signal, token)
        : send(body, betas, signal, token)
    const open = (signal: AbortSignal): Promise<AsyncIterable<unknown>> =>
      attempt(signal).catch((cause: unknown) => {
        if (dropping || !isMovedThinking(cause)) return Promise.reject(cause)
        dropping = true
        return attempt(signal)
      })
    const events = fromAsyncIterable(
      patiently((signal) => untilStop(signal, open), origin, idle),
      (cause) => (isModelError(cause) ? cause : requestError(origin, cause))
    )
    const turn = decodeTurn(
      events,
      (sink) => makeDecoder({ names, priced, makeId, fail: (fault) => faultError(origin, fault) }, sink),
      known
    )
    return warned(warn(removed), warned(warnOfMedia(damaged), turn))
  })

  return { nextTurn: (request): Stream.Stream<TurnPart, ModelError> => Stream.unwrap(nextTurn(request)) }
}
