/** The official SDK for Bedrock: it signs requests or sends a bearer token, and reads AWS's event stream. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ModelError } from "../../../core/ModelError.ts"
import { betaHeader, clientOptions, type Connection } from "../anthropic/connection.ts"
import { requestError } from "../anthropic/failure.ts"
import type { Send } from "../anthropic/session.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { loadPeer } from "../wire/peer.ts"
import { objectOf } from "../wire/read.ts"

/** AWS credentials, written down. */
export interface Credentials {
  /** The id of the access key. */
  readonly accessKeyId: string
  /** The secret of the access key. */
  readonly secretAccessKey: Redacted.Redacted
  /** The token of a temporary session. Default: none. */
  readonly sessionToken?: Redacted.Redacted | undefined
}

/** Time that is given to the end of the HTTP response behind the end of the answer, so that the connection is kept. */
const lingering = 200

/** Reads the rest of the stream after the answer for a short time, and ignores its content and failures. */
const drain = (iterator: AsyncIterator<unknown>): void => {
  const timer = setTimeout(() => {
    iterator.return?.().then(undefined, () => undefined)
  }, lingering)
  const over = (): void => clearTimeout(timer)
  const readNext = (): void => {
    iterator.next().then(({ done }) => (done === true ? over() : readNext()), over)
  }
  readNext()
}

const ended = { done: true, value: undefined } as const

/** The events of the SDK, up to the end of the answer. */
const upToStop = (events: AsyncIterable<unknown>, origin: Origin): AsyncIterable<ReadonlyArray<unknown>> => ({
  [Symbol.asyncIterator]: () => {
    const iterator = events[Symbol.asyncIterator]()
    let isOver = false
    return {
      next: async () => {
        if (isOver) return ended
        const { done, value } = await iterator.next()
        if (done === true) return ended
        if (isTooDeep(value)) return Promise.reject(badResponse(origin, tooDeep))
        if (objectOf(value)?.["type"] === "message_stop") {
          isOver = true
          drain(iterator)
        }
        return { done: false, value: [value] }
      },
      return: async () => (isOver ? ended : iterator.return?.().then(() => ended)) ?? ended
    }
  }
})

/** Loads the SDK and makes a client. */
export const make = Effect.fnUntraced(function* (
  connection: Connection & {
    readonly region?: string | undefined
    readonly bearerToken?: Redacted.Redacted | undefined
    readonly credentials?: Credentials | undefined
  },
  origin: Origin
): Effect.fn.Return<Send, ModelError> {
  const { AnthropicBedrock } = yield* loadPeer(
    origin,
    "@anthropic-ai/bedrock-sdk",
    () => import("@anthropic-ai/bedrock-sdk")
  )
  const { bearerToken, credentials, region } = connection
  const client = yield* Effect.try({
    try: () => {
      const common = { ...clientOptions(connection, origin), awsRegion: region }
      if (bearerToken !== undefined) return new AnthropicBedrock({ ...common, apiKey: Redacted.value(bearerToken) })
      if (credentials === undefined) return new AnthropicBedrock(common)
      const { accessKeyId, secretAccessKey, sessionToken } = credentials
      return new AnthropicBedrock({
        ...common,
        // Else a bearer token from the environment would win over credentials that were written down.
        apiKey: null,
        awsAccessKey: accessKeyId,
        awsSecretKey: Redacted.value(secretAccessKey),
        awsSessionToken: sessionToken === undefined ? null : Redacted.value(sessionToken)
      })
    },
    catch: (cause) => requestError(origin, cause)
  })
  return async ({ betas, body, origin: own, signal }) => {
    const headers = betaHeader(connection, betas)
    return upToStop(
      await client.post<AsyncIterable<unknown>>("/v1/messages", { body, signal, stream: true, headers }),
      own
    )
  }
})
