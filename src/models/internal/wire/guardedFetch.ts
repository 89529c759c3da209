/**
 * Guards the answers of a model server under every SDK. It bounds their size and rejects redirects to other servers.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import { observed } from "../../../support/effect/observed.ts"
import { guardBody, readWebBeginning } from "../../../support/http/body.ts"
import { followRedirects, redirectTarget } from "../../../support/http/hops.ts"
import { isTooDeep } from "../schema/nesting.ts"
import { badResponse, type Origin } from "./errors.ts"
import { parse } from "./read.ts"

type Fetch = typeof globalThis.fetch

const mebibyte = 1024 * 1024

/** The largest answer that is read, in bytes. The longest streams of real models are a third of that. */
export const largestBody = 128 * mebibyte

/** The largest single event, in bytes: a response that repeats all its images at its end. */
export const largestEvent = 32 * mebibyte

/** Bytes of the body of an error that are read, and the milliseconds that this may take. */
const largestError = mebibyte
const longestError = 10_000

/** Milliseconds that an SDK waits for an answer, unless it is told otherwise. */
const defaultTimeout = 600_000

/** The timeout of a layer in milliseconds. */
export const timeoutOf = (timeout: Duration.Input | undefined): number =>
  timeout === undefined ? defaultTimeout : Duration.toMillis(timeout)

/** Inspects a chunk of a body and returns a problem, if any. */
type Watch = (chunk: Uint8Array) => string | undefined

/** The problem of an answer that is too large. */
export const tooLarge = (what: string, limit: number): string => `${what} is larger than ${limit / mebibyte} MiB`

/** Counts the bytes that an SDK buffers until the empty line after a server-sent event. */
const watchEvents = (): Watch => {
  let pending = 0
  let isLineStart = true
  let afterReturn = false
  return (chunk) => {
    for (const byte of chunk) {
      if (byte === 10 && afterReturn) {
        afterReturn = false
        continue
      }
      afterReturn = byte === 13
      const isEnd = byte === 10 || byte === 13
      if (isEnd && isLineStart) pending = 0
      isLineStart = isEnd
      pending++
    }
    return pending > largestEvent ? tooLarge("an event of the stream", largestEvent) : undefined
  }
}

/** Counts the bytes that are buffered of a line. */
const watchLines = (): Watch => {
  let pending = 0
  return (chunk) => {
    const end = chunk.lastIndexOf(10)
    pending = end < 0 ? pending + chunk.length : chunk.length - end
    return pending > largestEvent ? tooLarge("a line of the stream", largestEvent) : undefined
  }
}

/** Reads the lengths of AWS's frames, because the SDK allocates that much. */
const watchFrames = (): Watch => {
  let bytesLeft = 0
  let length = 0
  let digits = 0
  return (chunk) => {
    for (let at = 0; at < chunk.length;) {
      if (bytesLeft > 0) {
        const skipCount = Math.min(bytesLeft, chunk.length - at)
        bytesLeft -= skipCount
        at += skipCount
        continue
      }
      length = length * 256 + (chunk[at] ?? 0)
      at++
      if (++digits < 4) continue
      if (length > largestEvent) return tooLarge("a frame of the stream", largestEvent)
      bytesLeft = Math.max(0, length - 4)
      length = 0
      digits = 0
    }
    return undefined
  }
}

const watchAll = (watch: Watch): Watch => {
  let total = 0
  return (chunk) => {
    total += chunk.length
    return total > largestBody ? tooLarge("the answer", largestBody) : watch(chunk)
  }
}

/** Copies a response but for its body. Statuses may be any, and their texts too: nobody reads those. */
const headOf = ({ headers, status }: Response): ResponseInit => ({ headers, status: Math.min(status, 599) })

/** Wraps a response so that its body fails beyond the limits. */
const bounded = (response: Response, origin: Origin): Response => {
  // An SDK takes an answer without a body for a connection that failed.
  if (response.body === null) return new Response("", { headers: response.headers })
  const type = response.headers.get("content-type") ?? ""
  const own = type.includes("vnd.amazon.eventstream")
    ? watchFrames()
    : type.includes("ndjson")
      ? watchLines()
      : watchEvents()
  const watch = watchAll(own)
  const body = guardBody(response.body, (chunk) => {
    const problem = watch(chunk)
    return problem === undefined ? undefined : badResponse(origin, problem)
  })
  return new Response(body, headOf(response))
}

/** Reads the body of an error, within the time and size that are worth it: the status names the failure. */
const readErrorText = async (response: Response, timeout: number): Promise<string> => {
  const { bytes } = await readWebBeginning(response.body, largestError, Math.min(timeout, longestError))
  const text = new TextDecoder().decode(bytes)
  const parsed = parse(text)
  return Result.isSuccess(parsed) && isTooDeep(parsed.success) ? "" : text
}

const redirects = new Set([301, 302, 303, 307, 308])

const redirectHead = ({ headers, status }: Response) => ({ status, location: headers.get("location") })

/** Redirects that are followed on one server, at most. */
const mostRedirects = 5

/**
 * Sends a request, and follows redirects within its own server. A redirect to another server becomes an error response:
 * that server must not get the headers.
 */
const send = async (fetch: Fetch, input: Parameters<Fetch>[0], init: RequestInit): Promise<Response> => {
  const request = (to: typeof input) =>
    Effect.tryPromise({ try: () => fetch(to, { ...init, redirect: "manual" }), catch: identity })
  const from = URL.parse(input instanceof Request ? input.url : String(input))
  const isRepeatable = !(input instanceof Request) && typeof init.body === "string"
  const response = await observed(
    Effect.runPromise(
      from === null
        ? request(input)
        : followRedirects(
            { url: from, method: init.method ?? "GET" },
            {
              send: (hop) => request(hop.redirects === 0 ? input : hop.url),
              headOf: redirectHead,
              allow: (next) => isRepeatable && next.isHome && !next.isBodyDropped && next.redirects <= mostRedirects,
              close: (redirect) => Effect.promise(async () => redirect.body?.cancel())
            }
          )
    )
  )
  if (!redirects.has(response.status) && response.type !== "opaqueredirect") return response
  await response.body?.cancel()
  const to = from === null ? undefined : redirectTarget(redirectHead(response), from)
  const where = to === undefined || to.origin === "null" ? "elsewhere" : `to ${to.origin}`
  const message = `the server redirects ${where}, which is not followed: give the URL that it redirects to as the base URL`
  return Response.json(
    { error: { type: "redirect", message } },
    { status: redirects.has(response.status) ? response.status : 302 }
  )
}

/**
 * Makes a `fetch` for an SDK. `readError` converts an error body for the SDK. An oversized answer fails with a
 * `ModelError`, which SDKs pass on. A redirect to another server becomes an error response.
 */
export const guardedFetch =
  (
    fetch: Fetch,
    origin: Origin,
    options: {
      readonly timeout?: Duration.Input | undefined
      readonly readError?: ((text: string) => string) | undefined
      /** True if the reader of the body bounds it. Default: false. */
      readonly isReaderBound?: boolean | undefined
    }
  ): Fetch =>
  async (input, init) => {
    const response = await send(fetch, input, init ?? {})
    if (response.ok) {
      return options.isReaderBound === true && response.body !== null ? response : bounded(response, origin)
    }
    const { status } = response
    if (status < 300) return response
    const text = await readErrorText(response, timeoutOf(options.timeout))
    const isBodiless = status === 304
    return new Response(isBodiless ? null : (options.readError?.(text) ?? text), headOf(response))
  }
