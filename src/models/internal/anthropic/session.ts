/** Sessions with a Claude model, over any transport. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { fromAsyncIterable, type ModelRequest, type ModelSession } from "../../../core/ChatModel.ts"
import { isObject } from "../../../core/Json.ts"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import type { Pricing } from "../facts/facts.ts"
import { makeSessions, type Write } from "../turn/session.ts"
import type { Origin } from "../wire/errors.ts"
import { patiently } from "../wire/patience.ts"
import { textsOf } from "../wire/secrets.ts"
import { rejectUnanswered } from "./clientTools.ts"
import { type Fault, makeDecoder } from "./decode.ts"
import { faultError, isMovedThinking, requestError } from "./failure.ts"
import { makeEncoder, type Encoding } from "./request.ts"
import { rejectUncalled } from "./toolOptions.ts"
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
  readonly priced: Pricing
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

/** Makes the opener of sessions. */
export const makeClaudeSessions = (setup: Setup): Effect.Effect<ModelSession> => {
  const { accessToken, encoding, idle, priced, provider, secrets, send } = setup
  const { model } = encoding

  const write = (): Write<unknown> => {
    const encode = makeEncoder(encoding)
    let isDropping = false
    return Effect.fnUntraced(function* (request, makeId) {
      const serverTools = encoding.settings.serverTools ?? []
      const refused =
        rejectUnanswered({ provider, model }, serverTools, request) ??
        rejectUncalled({ provider, model }, serverTools, request)
      if (refused !== undefined) return yield* refused
      const { betas, body, damaged, names, removed } = yield* Effect.fromResult(encode(request))
      const hidden = [...secrets]
      const origin: Origin = { provider, model, secrets: hidden, said: () => saidIn(request) }
      const eventsWith = (token: string | undefined) => {
        const attempt = (signal: AbortSignal): Promise<AsyncIterable<unknown>> =>
          isDropping
            ? send(dropMovedThinking(body), [...betas, bindingBeta], signal, token)
            : send(body, betas, signal, token)
        const open = (signal: AbortSignal): Promise<AsyncIterable<unknown>> =>
          attempt(signal).catch((cause: unknown) => {
            if (isDropping || !isMovedThinking(cause)) return Promise.reject(cause)
            isDropping = true
            return attempt(signal)
          })
        return fromAsyncIterable(
          patiently((signal) => untilStop(signal, open), origin, idle),
          (cause) => (isModelError(cause) ? cause : requestError(origin, cause))
        )
      }
      // The warnings of the turn come first: the token may take a while.
      const events =
        accessToken === undefined
          ? eventsWith(undefined)
          : Stream.unwrap(
              Effect.map(accessToken, (token) => {
                hidden.push(Redacted.value(token))
                return eventsWith(Redacted.value(token))
              })
            )
      const context = { names, priced, makeId, fail: (fault: Fault) => faultError(origin, fault) }
      return { events, makeDecoder: (sink) => makeDecoder(context, sink), damaged, lost: removed }
    })
  }

  return makeSessions({ provider, model }, Effect.sync(write))
}
