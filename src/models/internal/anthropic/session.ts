/** Sessions with a Claude model, over any transport. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelRequest, ModelSession } from "../../../core/ChatModel.ts"
import { isObject } from "../../../core/Json.ts"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import { fromAsyncArrays } from "../../../support/effect/asyncIterable.ts"
import type { PriceUsage } from "../facts/facts.ts"
import { makeSessions, type Write } from "../turn/session.ts"
import { makeEfforts } from "../turn/thinking.ts"
import type { Origin } from "../wire/errors.ts"
import { makeJsonWriter } from "../wire/jsonText.ts"
import { patiently } from "../wire/patience.ts"
import { textsOf } from "../wire/secrets.ts"
import { rejectUnanswered } from "./clientTools.ts"
import { type Fault, makeDecoder } from "./decode.ts"
import { faultError, isMovedThinking, requestError } from "./failure.ts"
import { makeEncoder, type Encoding } from "./request.ts"
import { rejectUncalled } from "./toolOptions.ts"
import type { Body } from "./wire.ts"

/** A request that is ready to be sent. `text` is the JSON of its body. */
export interface OutgoingRequest {
  readonly body: Body
  readonly text: string
  readonly betas: ReadonlyArray<string>
  readonly signal: AbortSignal
  readonly token?: string | undefined
  readonly origin: Origin
}

/** Sends a request and gives the events of the answer, parsed as JSON and not checked: those that came together. */
export type Send = (request: OutgoingRequest) => Promise<AsyncIterable<ReadonlyArray<unknown>>>

/** The parts of a session. `secrets` must not be in any error; `idle` is how long to wait for
 * an event (milliseconds); `priced` puts a price on usage. */
export interface Setup {
  readonly provider: string
  /** The address of the server, for messages about its connection. */
  readonly address?: string | undefined
  readonly encoding: Encoding
  /** Opens the sender of a session. */
  readonly open: Effect.Effect<Send, never, Scope.Scope>
  readonly secrets: ReadonlyArray<string>
  readonly idle: number
  readonly priced: PriceUsage
  /** The access token of a request, if each has its own. */
  readonly accessToken?: Effect.Effect<Redacted.Redacted, ModelError> | undefined
}

/** A reason that costs nothing to make: without one, `abort()` makes an exception with a stack trace. */
const abandonReason = "nobody reads this answer any more"

/** Reports the event behind which an answer has no more. */
export const isLast = (event: unknown): boolean => isObject(event) && event["type"] === "message_stop"

/** The events of an answer that is requested when somebody reads. Leaving before its end ends the request. */
const lazily = (
  open: (signal: AbortSignal) => Promise<AsyncIterable<ReadonlyArray<unknown>>>,
  abandonSignal: AbortSignal
): AsyncIterable<ReadonlyArray<unknown>> => ({
  [Symbol.asyncIterator]: () => {
    const request = new AbortController()
    let isOver = false
    let iterator: AsyncIterator<ReadonlyArray<unknown>> | undefined
    abandonSignal.addEventListener("abort", () => {
      if (!isOver) request.abort(abandonReason)
    })
    return {
      next: async () => {
        iterator ??= (await open(request.signal))[Symbol.asyncIterator]()
        const events = await iterator.next()
        isOver ||= events.done === true || isLast(events.value.at(-1))
        return events
      },
      return: async () => iterator?.return?.() ?? { done: true, value: undefined }
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
export const makeClaudeSessions = (setup: Setup): Effect.Effect<ModelSession, never, Scope.Scope> => {
  const { accessToken, address, idle, open: openSender, priced, provider, secrets } = setup
  const efforts = makeEfforts(setup.encoding.profile.efforts)
  const encoding = { ...setup.encoding, efforts }
  const { model } = encoding

  const writeBy = (send: Send): Write<unknown> => {
    const encode = makeEncoder(encoding)
    const writeJson = makeJsonWriter()
    let isDropping = false
    return Effect.fnUntraced(function* (request, makeId) {
      const serverTools = encoding.settings.serverTools ?? []
      const refused =
        rejectUnanswered({ provider, model }, serverTools, request) ??
        rejectUncalled({ provider, model }, serverTools, request)
      if (refused !== undefined) return yield* refused
      const { betas, body, damaged, effort, names, removed } = yield* Effect.fromResult(encode(request))
      const hidden = [...secrets]
      const origin: Origin = { provider, model, address, secrets: hidden, answered: {}, said: () => saidIn(request) }
      const eventsWith = (token: string | undefined) => {
        const attempt = (signal: AbortSignal) => {
          const wireBody = isDropping ? dropMovedThinking(body) : body
          const all = isDropping ? [...betas, bindingBeta] : betas
          return send({ body: wireBody, text: writeJson(wireBody), betas: all, signal, token, origin })
        }
        const open = (signal: AbortSignal) =>
          attempt(signal).catch((cause: unknown) => {
            if (isDropping || !isMovedThinking(cause)) return Promise.reject(cause)
            isDropping = true
            return attempt(signal)
          })
        return fromAsyncArrays(
          patiently((abandonSignal) => lazily(open, abandonSignal), origin, idle),
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
      return { events, makeDecoder: (sink) => makeDecoder(context, sink), damaged, lost: removed, effort }
    })
  }

  return makeSessions({ provider, model }, Effect.map(openSender, writeBy), efforts)
}
