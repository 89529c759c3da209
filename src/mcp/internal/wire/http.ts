/** The transports to servers that are reached by HTTP, over a `fetch` with a limit for each message. */
import type { Transport } from "@modelcontextprotocol/client"
import type { FetchLike } from "../../../support/http/fetchLike.ts"
import { revealed } from "../../../support/store/redacted.ts"
import type { HttpServer } from "../../McpConfig.ts"
import { answering, type ReadMessage } from "./answers.ts"
import { collector, type Frame } from "./framing.ts"
import type { Sdk } from "./sdk.ts"

/** The last answer of a server and the failure of the last request, for a better message than the client's. */
export interface Outcome {
  status?: number | undefined
  failure?: unknown
}

const encoder = new TextEncoder()

const lineFeed = 10
const carriageReturn = 13

/** Passes events on when they are whole; in the place of one over the limit goes the failure of its request. */
const bounded = (limit: number): TransformStream<Uint8Array, Uint8Array> => {
  const event = collector(limit)
  let previous = 0
  let breaks = 0
  const release = (frame: Frame, controller: TransformStreamDefaultController<Uint8Array>): void => {
    if (frame._tag === "Whole") controller.enqueue(frame.bytes)
    else if (frame.answer === undefined) controller.error(new Error(`an event of ${frame.size} bytes was left out`))
    else controller.enqueue(encoder.encode(`event: message\ndata: ${JSON.stringify(frame.answer)}\n\n`))
  }
  return new TransformStream({
    transform: (chunk, controller) => {
      let from = 0
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at]
        // "\r\n" is one break.
        if (byte === lineFeed && previous === carriageReturn) previous = lineFeed
        else if (byte === lineFeed || byte === carriageReturn) {
          previous = byte
          breaks++
        } else {
          previous = 0
          breaks = 0
        }
        if (breaks < 2) continue
        // The second half of a last "\r\n" begins the next event, which it does not change.
        event.add(chunk.slice(from, at + 1))
        release(event.end(), controller)
        from = at + 1
        breaks = 0
      }
      if (from < chunk.length) event.add(chunk.slice(from))
    },
    flush: (controller) => {
      if (!event.isEmpty()) release(event.end(), controller)
    }
  })
}

/** Passes a message on when it is whole; in the place of one over the limit goes the failure of its request. */
const whole = (limit: number): TransformStream<Uint8Array, Uint8Array> => {
  const body = collector(limit)
  return new TransformStream({
    transform: (chunk) => body.add(chunk),
    flush: (controller) => {
      if (body.isEmpty()) return
      const frame = body.end()
      if (frame._tag === "Whole") controller.enqueue(frame.bytes)
      else if (frame.answer === undefined) controller.error(new Error(`the answer is over the limit of ${limit} bytes`))
      else controller.enqueue(encoder.encode(JSON.stringify(frame.answer)))
    }
  })
}

/** Ends a body that is over the limit. */
const countBytes = (limit: number): TransformStream<Uint8Array, Uint8Array> => {
  let size = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      size += chunk.length
      if (size > limit) controller.error(new Error(`the answer is over the limit of ${limit} bytes`))
      else controller.enqueue(chunk)
    }
  })
}

/** Bounds the answers of a `fetch`. */
export const limited =
  (fetch: FetchLike, maxMessage: number): FetchLike =>
  async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const type = response.headers.get("content-type") ?? ""
    const limiter = type.includes("text/event-stream")
      ? bounded
      : type.includes("application/json")
        ? whole
        : countBytes
    const body = response.body.pipeThrough(limiter(maxMessage))
    return new Response(body, { status: response.status, headers: response.headers })
  }

/** Keeps the last outcome of a `fetch`. */
export const watched =
  (fetch: FetchLike, last: Outcome): FetchLike =>
  async (input, init) => {
    const response = await fetch(input, init).catch((error: unknown) => {
      last.failure = error
      return Promise.reject(error)
    })
    last.status = response.status
    last.failure = undefined
    return response
  }

/** Notes the tokens that requests carry, which a layer of authorisation has added. */
export const noting =
  (fetch: FetchLike, add: (name: string, value: string) => void): FetchLike =>
  (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    const token = headers.get("authorization")
    if (token !== null) add("authorization", token)
    return fetch(input, init)
  }

/** A transport, and the function that ends its session on the server. */
export interface HttpTransport {
  readonly transport: Transport
  readonly leave?: () => Promise<void>
}

/** Makes the transport of a server: streamable HTTP, or the older SSE. */
export const open = (
  sdk: Sdk,
  config: HttpServer,
  url: URL,
  isOld: boolean,
  fetch: FetchLike,
  read: ReadMessage
): HttpTransport => {
  const options = { fetch, requestInit: { headers: revealed(config.headers) } }
  if (isOld) return { transport: answering(new sdk.SSEClientTransport(url, options), read) }
  const transport = new sdk.StreamableHTTPClientTransport(url, options)
  return { transport: answering(transport, read), leave: () => transport.terminateSession() }
}
