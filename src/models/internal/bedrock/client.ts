/** AWS's SDK, as the one request that a model makes with it: over our `fetch`, without retries of its own. */
import type { ConverseCommandOutput, ConverseStreamCommandInput } from "@aws-sdk/client-bedrock-runtime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import { fromAsyncIterable } from "../../../core/ChatModel.ts"
import { isModelError, ModelError } from "../../../core/ModelError.ts"
import { defined } from "../../../support/json/defined.ts"
import { revealed } from "../../../support/store/redacted.ts"
import { requestError } from "../anthropic/failure.ts"
import type { Origin } from "../wire/errors.ts"
import { guardedFetch, timeoutOf } from "../wire/guardedFetch.ts"
import { patiently } from "../wire/patience.ts"
import { loadPeer } from "../wire/peer.ts"
import { objectOf, objectsOf, parse, stringOf } from "../wire/read.ts"
import type { Credentials } from "./transport.ts"
import type { Body } from "./wire.ts"

/** Settings of the connection. */
export interface Connection {
  /** The region. Default: `AWS_REGION` and AWS's configuration files. */
  readonly region?: string | undefined
  /** An API key of Bedrock. Default: `AWS_BEARER_TOKEN_BEDROCK`, else AWS's credential chain. */
  readonly bearerToken?: Redacted.Redacted | undefined
  /** AWS credentials. Default: AWS's credential chain. */
  readonly credentials?: Credentials | undefined
  /** The address of a VPC endpoint or a gateway. Default: AWS's own. */
  readonly baseURL?: string | undefined
  /** Headers that are sent and signed with each request. Default: none. */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  /** Makes HTTP requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** The longest wait for the response and for each next event. Default: 10 minutes. */
  readonly timeout?: Duration.Input | undefined
}

/** The events of an answer. */
export type Ask = (body: Body, collectTexts: NonNullable<Origin["said"]>) => Stream.Stream<unknown, ModelError>

const packageName = "@aws-sdk/client-bedrock-runtime"

/** The part of the SDK's request that is sent. */
interface SentRequest {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number | undefined
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** An error's body as the SDK reads it: JSON with a message. Gateways have other forms. */
const errorBody = (text: string): string => {
  const parsed = parse(text)
  const body = Result.isSuccess(parsed) ? objectOf(parsed.success) : undefined
  if (stringOf(body?.["message"]) !== undefined || stringOf(body?.["Message"]) !== undefined) return text
  const page = text.trimStart().startsWith("<") ? "the server answered with a web page" : text
  return JSON.stringify({ ...body, message: stringOf(objectOf(body?.["error"])?.["message"]) ?? page })
}

/** Headers that `fetch` makes itself. */
const own = new Set(["host", "content-length"])

/** The handler that the SDK sends its requests by. It remembers the headers of the last answer, for errors inside of it. */
const makeHandler = (fetch: typeof globalThis.fetch) => {
  let last = new Headers()
  return {
    headers: (): Headers => last,
    metadata: { handlerProtocol: "http/1.1" },
    updateHttpClientConfig: () => undefined,
    httpHandlerConfigs: () => ({}),
    handle: async (request: SentRequest, options?: { readonly abortSignal?: unknown }) => {
      const { body, headers, hostname, method, path, port, protocol } = request
      const { abortSignal } = options ?? {}
      const response = await fetch(`${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}`, {
        method,
        headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !own.has(name.toLowerCase()))),
        ...(typeof body === "string" || body instanceof Uint8Array
          ? { body: new TextDecoder().decode(bytesOf(body)) }
          : {}),
        ...(abortSignal instanceof AbortSignal ? { signal: abortSignal } : {})
      })
      last = response.headers
      return {
        response: {
          statusCode: response.status,
          headers: Object.fromEntries(response.headers),
          body: response.body ?? new Uint8Array()
        }
      }
    }
  }
}

const encoder = new TextEncoder()

const bytesOf = (body: string | Uint8Array): Uint8Array => (typeof body === "string" ? encoder.encode(body) : body)

const textOf = (cause: unknown, key: string): string | undefined =>
  Predicate.hasProperty(cause, key) ? stringOf(cause[key]) : undefined

/** Names of errors that JavaScript makes. All others are AWS's. */
const plainNames = new Set(["", "Error", "TypeError", "SyntaxError", "RangeError", "AbortError", "TimeoutError"])

/** Names of exceptions inside a stream start in lower case. Unlisted ones are server failures. */
const inStream = (name: string): string =>
  name.endsWith("Exception") ? name.slice(0, 1).toLowerCase() + name.slice(1) : "internalServerException"

/** The SDK appends this to a server's message. */
const hint = "\n  Deserialization error:"

const withoutHint = (message: string): string => {
  const at = message.indexOf(hint)
  return at < 0 ? message : message.slice(0, at)
}

const noRegion = "there is no region: set AWS_REGION, or give region"

const failureOf = (origin: Origin, cause: unknown, headers: Headers): ModelError => {
  if (isModelError(cause)) return cause
  const name = textOf(cause, "name") ?? ""
  const fullMessage = textOf(cause, "message") ?? ""
  const message = withoutHint(fullMessage)
  if (name === "CredentialsProviderError" || name === "TokenProviderError") {
    return requestError(origin, { cause: { name: "CredentialsProviderError" } })
  }
  if (/region is missing/i.test(message)) {
    const { model, provider } = origin
    return new ModelError({ provider, model, reason: { _tag: "InvalidRequest" }, detail: noRegion })
  }
  const metadata = Predicate.hasProperty(cause, "$metadata") ? objectOf(cause["$metadata"]) : undefined
  const status = metadata?.["httpStatusCode"]
  if (typeof status === "number" && status >= 300) {
    return requestError(origin, { status, type: name, error: { message }, headers })
  }
  if (!plainNames.has(name)) return requestError(origin, { type: inStream(name), error: { message }, headers })
  return requestError(origin, name === "Error" && message !== fullMessage ? new Error(message) : cause)
}

/** An answer in one piece, as the events that it would have been. */
const eventsOf = ({ output, stopReason, usage }: ConverseCommandOutput): ReadonlyArray<unknown> => [
  ...objectsOf(objectOf(objectOf(output)?.["message"])?.["content"]).flatMap((block, contentBlockIndex) => {
    const delta = (one: unknown) => ({ contentBlockDelta: { contentBlockIndex, delta: one } })
    const use = objectOf(block["toolUse"])
    const reasoning = objectOf(block["reasoningContent"])
    if (use !== undefined) {
      return [
        { contentBlockStart: { contentBlockIndex, start: { toolUse: use } } },
        delta({ toolUse: { input: JSON.stringify(use["input"] ?? {}) } }),
        { contentBlockStop: { contentBlockIndex } }
      ]
    }
    return [
      delta(reasoning === undefined ? block : { reasoningContent: objectOf(reasoning["reasoningText"]) ?? reasoning })
    ]
  }),
  { messageStop: { stopReason } },
  { metadata: { usage } }
]

/** Some models stream words, but no calls: they are then asked for the whole answer. */
const cantStream = (cause: unknown): boolean =>
  /tool use in streaming|streaming mode/i.test(textOf(cause, "message") ?? "")

/** Loads the SDK and makes a client. */
export const makeClient = Effect.fnUntraced(function* (
  connection: Connection,
  origin: Origin
): Effect.fn.Return<Ask, ModelError> {
  const sdk = yield* loadPeer(origin, packageName, () => import("@aws-sdk/client-bedrock-runtime"))
  const { baseURL, bearerToken, credentials, region, timeout } = connection
  const handler = makeHandler(
    guardedFetch(connection.fetch ?? globalThis.fetch, origin, { timeout, readError: errorBody })
  )
  const client = new sdk.BedrockRuntimeClient({
    maxAttempts: 1,
    requestHandler: handler,
    ...defined({ region, endpoint: baseURL }),
    ...(bearerToken === undefined
      ? {}
      : { token: { token: Redacted.value(bearerToken) }, authSchemePreference: ["httpBearerAuth"] }),
    ...(credentials === undefined || bearerToken !== undefined
      ? {}
      : {
          credentials: {
            accessKeyId: credentials.accessKeyId,
            secretAccessKey: Redacted.value(credentials.secretAccessKey),
            ...(credentials.sessionToken === undefined
              ? {}
              : { sessionToken: Redacted.value(credentials.sessionToken) })
          },
          // Else a bearer token from the environment would win over credentials that were written down.
          authSchemePreference: ["sigv4"]
        })
  })
  const headers = revealed(connection.headers)
  if (Object.keys(headers).length > 0) {
    client.middlewareStack.add(
      (next) => (args) => {
        if (Predicate.hasProperty(args.request, "headers") && Predicate.isObject(args.request.headers)) {
          Object.assign(args.request.headers, headers)
        }
        return next(args)
      },
      // Before the request is signed.
      { step: "build", name: "givenHeaders" }
    )
  }
  let streams = true

  async function* whole(input: ConverseStreamCommandInput, abortSignal: AbortSignal): AsyncGenerator<unknown> {
    yield* eventsOf(await client.send(new sdk.ConverseCommand(input), { abortSignal }))
  }

  async function* answer(body: Body, abortSignal: AbortSignal): AsyncGenerator<unknown> {
    // The SDK's types know no lists that are read only; it does not write into them.
    const input = body as unknown as ConverseStreamCommandInput
    const isWhole = !streams && body.toolConfig !== undefined
    if (isWhole) return yield* whole(input, abortSignal)
    const opened = await client.send(new sdk.ConverseStreamCommand(input), { abortSignal }).catch((cause: unknown) => {
      if (body.toolConfig === undefined || !cantStream(cause)) return Promise.reject(cause)
      streams = false
      return undefined
    })
    yield* opened === undefined ? whole(input, abortSignal) : (opened.stream ?? [])
  }

  return (body, collectTexts) =>
    fromAsyncIterable(
      patiently((signal) => answer(body, signal), { ...origin, said: collectTexts }, timeoutOf(timeout)),
      (cause) => failureOf({ ...origin, said: collectTexts }, cause, handler.headers())
    )
})
