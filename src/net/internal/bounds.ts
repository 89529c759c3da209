/** Limits response bodies: bytes before and after decompression, and time. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Formatter from "effect/Formatter"
import * as Headers from "effect/http/Headers"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as UrlParams from "effect/http/UrlParams"
import * as Inspectable from "effect/Inspectable"
import { pipeArguments } from "effect/Pipeable"
import * as Stream from "effect/Stream"
import { type Refused, makeRefused } from "../../support/http/rules.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import { joinBytes } from "../../support/store/joinBytes.ts"
import { makeUnpacker, type Packing } from "./unpack.ts"

type Bytes = Stream.Stream<Uint8Array, HttpClientError.HttpClientError>

/** The limits of one response. Without `remaining`, its time is unlimited. */
export interface Bounds {
  readonly maxRawBytes: number
  readonly maxBytes: number
  readonly remaining: Duration.Duration | undefined
  readonly timeout: number
}

const formatBytes = (bytes: number): string =>
  bytes >= 1_000_000 ? `${Math.round(bytes / 100_000) / 10} MB` : `${bytes} bytes`

const countBytes =
  (limit: number, fail: () => HttpClientError.HttpClientError) =>
  (bytes: Bytes): Bytes =>
    Stream.suspend(() => {
      let total = 0
      return Stream.mapEffect(bytes, (chunk) => {
        total += chunk.length
        return total > limit ? Effect.fail(fail()) : Effect.succeed(chunk)
      })
    })

const formats: { readonly [encoding: string]: Packing | undefined } = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate"
}

/** Compressions of IANA's list. Servers also send `utf-8`, `none` and `aws-chunked`, which compress nothing. */
const packings = new Set(
  "aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd".split(" ")
)

/** Decompresses bytes. An empty body stays empty, although servers call it compressed. */
const unpackBytes = (
  packed: Bytes,
  format: Packing,
  fail: (cause: unknown) => HttpClientError.HttpClientError
): Bytes =>
  Stream.suspend(() => {
    let length = 0
    let isNothing = false
    const chunks = packed.pipe(
      Stream.map((chunk) => {
        length += chunk.length
        return new Uint8Array(chunk)
      }),
      Stream.onEnd(Effect.sync(() => void (isNothing = length === 0)))
    )
    return Stream.unwrap(
      Effect.map(Stream.toReadableStreamEffect(chunks), (readable) =>
        Stream.fromReadableStream<Uint8Array, HttpClientError.HttpClientError>({
          evaluate: () => readable.pipeThrough(makeUnpacker(format)),
          onError: fail
        })
      )
    ).pipe(
      Stream.catchIf(
        () => isNothing,
        () => Stream.empty
      )
    )
  })

/** Makes the error of a response whose headers have arrived. */
const failureOf = (
  response: HttpClientResponse.HttpClientResponse,
  cause: unknown,
  why?: Refused
): HttpClientError.HttpClientError =>
  HttpClientError.isHttpClientError(cause)
    ? cause
    : new HttpClientError.HttpClientError({
        reason: new HttpClientError.DecodeError({
          request: response.request,
          response,
          cause: why ?? cause,
          description: why?.message
        })
      })

const isEmpty = (response: HttpClientResponse.HttpClientResponse): boolean =>
  response.request.method === "HEAD" || response.status === 204 || response.status === 205 || response.status === 304

/** Streams the decompressed bytes of a response within its limits. */
const streamBytes = (response: HttpClientResponse.HttpClientResponse, bounds: Bounds): Bytes => {
  if (isEmpty(response)) return Stream.empty
  const fail = (rule: Refused["rule"], message: string) => {
    const why = makeRefused(rule, message)
    return failureOf(response, why, why)
  }
  const encodings = (response.headers["content-encoding"] ?? "")
    .split(",")
    .map((encoding) => encoding.trim().toLowerCase())
    .filter((encoding) => packings.has(encoding))
  const [encoding, ...more] = encodings
  const format = valueAt(formats, encoding)
  if (more.length > 0 || (encoding !== undefined && format === undefined)) {
    return Stream.fail(fail("encoding", `the answer is packed as "${encodings.join(", ")}", which was not asked for`))
  }
  const raw = countBytes(bounds.maxRawBytes, () =>
    fail("bytes", `the answer is longer than ${formatBytes(bounds.maxRawBytes)}`)
  )(
    Stream.catch(response.stream, (error) =>
      error.reason._tag === "EmptyBodyError" ? Stream.empty : Stream.fail(error)
    )
  )
  const unpacked = format === undefined ? raw : unpackBytes(raw, format, (cause) => failureOf(response, cause))
  const bounded = countBytes(bounds.maxBytes, () =>
    fail("bytes", `the answer is longer than ${formatBytes(bounds.maxBytes)} when it is unpacked`)
  )(unpacked)
  return bounds.remaining === undefined
    ? bounded
    : Stream.interruptWhen(
        bounded,
        Effect.delay(
          Effect.suspend(() => Effect.fail(fail("time", `the answer took longer than ${bounds.timeout} ms`))),
          bounds.remaining
        )
      )
}

/** Replaces the body of a response. */
export const replaceBody = (
  response: HttpClientResponse.HttpClientResponse,
  headers: Headers.Headers,
  stream: Bytes
): HttpClientResponse.HttpClientResponse => {
  const bytes = Effect.map(Stream.runCollect(stream), joinBytes)
  const text = Effect.map(bytes, (whole) => new TextDecoder().decode(whole))
  const decodeBody = <A>(work: () => A) => Effect.try({ try: work, catch: (cause) => failureOf(response, cause) })
  return {
    [HttpIncomingMessage.TypeId]: HttpIncomingMessage.TypeId,
    [HttpClientResponse.TypeId]: HttpClientResponse.TypeId,
    [Inspectable.NodeInspectSymbol]: () => response.toJSON(),
    toJSON: () => response.toJSON(),
    toString: () => Formatter.format(response.toJSON()),
    pipe() {
      return pipeArguments(this, arguments)
    },
    request: response.request,
    url: response.url,
    status: response.status,
    headers,
    cookies: response.cookies,
    remoteAddress: response.remoteAddress,
    stream,
    text,
    arrayBuffer: Effect.map(bytes, (whole) => whole.buffer),
    json: Effect.flatMap(text, (json) => decodeBody(() => (json === "" ? null : JSON.parse(json)))),
    urlParamsBody: Effect.flatMap(text, (form) => decodeBody(() => UrlParams.fromInput(new URLSearchParams(form)))),
    formData: Effect.flatMap(bytes, (whole) =>
      Effect.tryPromise({
        try: () => new Response(whole, { headers: { ...headers } }).formData(),
        catch: (cause) => failureOf(response, cause)
      })
    ),
    upgrade: Effect.suspend(() => {
      const why = makeRefused("upgrade", "connections that stay open are not made")
      return Effect.fail(failureOf(response, why, why))
    })
  }
}

/** Limits a response. `onEnd` runs when its body has been read or abandoned. */
export const boundResponse = (
  response: HttpClientResponse.HttpClientResponse,
  bounds: Bounds,
  onEnd: Effect.Effect<void>
): HttpClientResponse.HttpClientResponse =>
  replaceBody(
    response,
    isEmpty(response)
      ? response.headers
      : Headers.removeMany(
          response.headers,
          response.headers["content-encoding"] === undefined ? [] : ["content-encoding", "content-length"]
        ),
    Stream.ensuring(streamBytes(response, bounds), onEnd)
  )
