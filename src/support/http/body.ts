/** Bodies of answers under their bounds: bytes as they come, bytes when they are unpacked, and time. */
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
import { type Refused, refused } from "./rules.ts"

type Bytes = Stream.Stream<Uint8Array, HttpClientError.HttpClientError>

/** The bounds of one answer; without `remaining`, it may last as long as it likes, and be as long. */
export interface Bounds {
  readonly maxRawBytes: number
  readonly maxBytes: number
  readonly remaining: Duration.Duration | undefined
  readonly timeout: number
}

const megabytes = (bytes: number): string =>
  bytes >= 1_000_000 ? `${Math.round(bytes / 100_000) / 10} MB` : `${bytes} bytes`

const counted =
  (limit: number, fail: () => HttpClientError.HttpClientError) =>
  (bytes: Bytes): Bytes =>
    Stream.suspend(() => {
      let seen = 0
      return Stream.mapEffect(bytes, (chunk) => {
        seen += chunk.length
        return seen > limit ? Effect.fail(fail()) : Effect.succeed(chunk)
      })
    })

/** Bytes to unpack, by the declarations of the platform. */
type Packed = InstanceType<typeof DecompressionStream>["writable"] extends WritableStream<infer Chunk> ? Chunk : never

const formats: { readonly [encoding: string]: "gzip" | "deflate" | undefined } = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate"
}

/** Encodings that pack, as IANA lists them: servers also say `utf-8`, `none` and `aws-chunked` of what is not packed. */
const packings = new Set(
  "aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd".split(" ")
)

/** Bytes unpacked. Servers say of no bytes at all, too, that they are packed. */
const unpack = (
  packed: Bytes,
  format: "gzip" | "deflate",
  fail: (cause: unknown) => HttpClientError.HttpClientError
): Bytes =>
  Stream.suspend(() => {
    let length = 0
    let isNothing = false
    const chunks = packed.pipe(
      Stream.map((chunk): Packed => {
        length += chunk.length
        return new Uint8Array(chunk)
      }),
      Stream.onEnd(Effect.sync(() => void (isNothing = length === 0)))
    )
    return Stream.unwrap(
      Effect.map(Stream.toReadableStreamEffect(chunks), (readable) =>
        Stream.fromReadableStream<Uint8Array, HttpClientError.HttpClientError>({
          evaluate: () => readable.pipeThrough(new DecompressionStream(format)),
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

/** The failure of an answer that has come. */
const failure = (
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

/** The bytes of an answer, unpacked, under its bounds. */
const bytesOf = (response: HttpClientResponse.HttpClientResponse, bounds: Bounds): Bytes => {
  if (isEmpty(response)) return Stream.empty
  const fail = (rule: Refused["rule"], message: string) => {
    const why = refused(rule, message)
    return failure(response, why, why)
  }
  const encodings = (response.headers["content-encoding"] ?? "")
    .split(",")
    .map((encoding) => encoding.trim().toLowerCase())
    .filter((encoding) => packings.has(encoding))
  const [encoding, ...more] = encodings
  const format = encoding === undefined ? undefined : formats[encoding]
  if (more.length > 0 || (encoding !== undefined && format === undefined)) {
    return Stream.fail(fail("encoding", `the answer is packed as "${encodings.join(", ")}", which was not asked for`))
  }
  const raw = counted(bounds.maxRawBytes, () =>
    fail("bytes", `the answer is longer than ${megabytes(bounds.maxRawBytes)}`)
  )(
    Stream.catch(response.stream, (error) =>
      error.reason._tag === "EmptyBodyError" ? Stream.empty : Stream.fail(error)
    )
  )
  const unpacked = format === undefined ? raw : unpack(raw, format, (cause) => failure(response, cause))
  const bounded = counted(bounds.maxBytes, () =>
    fail("bytes", `the answer is longer than ${megabytes(bounds.maxBytes)} when it is unpacked`)
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

/** Bytes in one piece. */
export const join = (chunks: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

/** The first bytes of an answer, and whether they are all. */
export interface Beginning {
  readonly bytes: Uint8Array
  readonly isWhole: boolean
}

/** Reads so many bytes of an answer at most, and not the rest. No body at all is one of no bytes. */
export const beginning = (
  { stream }: HttpClientResponse.HttpClientResponse,
  most: number
): Effect.Effect<Beginning, HttpClientError.HttpClientError> =>
  Effect.gen(function* () {
    const chunks: Array<Uint8Array> = []
    let length = 0
    const read = Stream.runForEachWhile(stream, (chunk) =>
      Effect.sync(() => {
        chunks.push(chunk)
        length += chunk.length
        return length <= most
      })
    )
    yield* Effect.catchIf(
      read,
      ({ reason }) => reason._tag === "EmptyBodyError",
      () => Effect.void
    )
    return { bytes: join(chunks).subarray(0, most), isWhole: length <= most }
  })

/** An answer whose body is given by a stream, however it is read. */
export const withStream = (
  response: HttpClientResponse.HttpClientResponse,
  headers: Headers.Headers,
  stream: Bytes
): HttpClientResponse.HttpClientResponse => {
  const bytes = Effect.map(Stream.runCollect(stream), join)
  const text = Effect.map(bytes, (whole) => new TextDecoder().decode(whole))
  const decoded = <A>(work: () => A) => Effect.try({ try: work, catch: (cause) => failure(response, cause) })
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
    json: Effect.flatMap(text, (json) => decoded(() => (json === "" ? null : JSON.parse(json)))),
    urlParamsBody: Effect.flatMap(text, (form) => decoded(() => UrlParams.fromInput(new URLSearchParams(form)))),
    formData: Effect.flatMap(bytes, (whole) =>
      Effect.tryPromise({
        try: () => new Response(whole, { headers: { ...headers } }).formData(),
        catch: (cause) => failure(response, cause)
      })
    ),
    upgrade: Effect.suspend(() => {
      const why = refused("upgrade", "connections that stay open are not made")
      return Effect.fail(failure(response, why, why))
    })
  }
}

/** An answer under its bounds; `done` is run when its body was read, or given up. */
export const bound = (
  response: HttpClientResponse.HttpClientResponse,
  bounds: Bounds,
  done: Effect.Effect<void>
): HttpClientResponse.HttpClientResponse =>
  withStream(
    response,
    isEmpty(response)
      ? response.headers
      : Headers.removeMany(
          response.headers,
          response.headers["content-encoding"] === undefined ? [] : ["content-encoding", "content-length"]
        ),
    Stream.ensuring(bytesOf(response, bounds), done)
  )
