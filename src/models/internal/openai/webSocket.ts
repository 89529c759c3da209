/**
 * The Responses API over a WebSocket: one connection for the turns of a session, on which the server goes on from its
 * last response. Each turn falls back to HTTP. https://developers.openai.com/api/docs/guides/websocket-mode
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { OpenAI } from "openai"
import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses"
import type { TurnPart } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { deepest, isTooDeep, tooDeep } from "../schema/nesting.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { largestBody, largestEvent, tooLarge } from "../wire/guardedFetch.ts"
import { objectOf, parse, stringOf } from "../wire/read.ts"
import { makeWarner } from "../wire/warned.ts"
import { idOf, isTerminal, lostTo } from "./background.ts"
import { sendNew } from "./previousResponse.ts"
import type { More, Sender } from "./session.ts"

type Body = ResponseCreateParamsStreaming

/** An event of a WebSocket. */
interface SocketEvent {
  readonly data?: unknown
}

interface Socket {
  readonly send: (text: string) => void
  readonly close: () => void
  readonly addEventListener: (
    type: "open" | "message" | "close" | "error",
    listen: (event: SocketEvent) => void
  ) => void
}

/** Node, Bun and Deno take headers in the place of protocols. Elsewhere the server refuses, and HTTP is used. */
declare const WebSocket:
  | (new (url: string, options: { readonly headers: Readonly<Record<string, string>> }) => Socket)
  | undefined

/** Milliseconds that a connection may take to open. */
const longestOpening = 15_000

/** OpenAI ends a connection after 60 minutes. An older one than this is replaced before a turn, not in it. */
const longestAge = 55 * 60_000

/** Times that a turn is sent before it goes over HTTP: a connection may be old, and a response lost. */
const mostAttempts = 3

/** A message, or `undefined` at the end of the connection. */
type Message = string | undefined

/** A connection. It has one turn at a time. */
interface Connection {
  readonly openedAt: number
  /** The response that the server goes on from, which is its last one. */
  last: string | undefined
  readonly isOpen: () => boolean
  readonly send: (text: string) => void
  readonly next: () => Promise<Message>
  readonly close: () => void
}

/** The messages of a socket, in their order, of which one reader takes one at a time. More than a turn has close it. */
const makeInbox = () => {
  const messages: Array<string> = []
  let size = 0
  let isClosed = false
  let wake: ((message: Message) => void) | undefined
  const give = (message: Message): void => {
    const waiting = wake
    wake = undefined
    if (waiting !== undefined) waiting(message)
    else if (message !== undefined) {
      messages.push(message)
      size += message.length
    }
  }
  /** Drops messages between two turns. */
  const clear = (): void => {
    messages.splice(0)
    size = 0
  }
  return {
    /** Reports whether there was room. */
    add: (text: string): boolean => {
      const hasRoom = size + text.length <= largestBody
      if (hasRoom) give(text)
      else clear()
      return hasRoom
    },
    close: (): void => {
      isClosed = true
      give(undefined)
    },
    isClosed: () => isClosed,
    clear,
    next: (): Promise<Message> => {
      const message = messages.shift()
      size -= message?.length ?? 0
      if (message !== undefined || isClosed) return Promise.resolve(message)
      return new Promise((resolve) => {
        wake = resolve
      })
    }
  }
}

/** Opens a connection. `undefined` if the server refuses it, or does not answer in time. */
const connect = (url: string, headers: Readonly<Record<string, string>>, openedAt: number, signal: AbortSignal) =>
  new Promise<Connection | undefined>((resolve) => {
    if (WebSocket === undefined || signal.aborted) return resolve(undefined)
    const inbox = makeInbox()
    const socket = new WebSocket(url, { headers })
    const close = (): void => {
      inbox.close()
      socket.close()
      resolve(undefined)
    }
    const timer = setTimeout(close, longestOpening)
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", close)
    }
    signal.addEventListener("abort", close)
    socket.addEventListener("open", () => {
      end()
      resolve({
        openedAt,
        last: undefined,
        isOpen: () => !inbox.isClosed(),
        send: (text) => {
          inbox.clear()
          socket.send(text)
        },
        next: inbox.next,
        close
      })
    })
    socket.addEventListener("message", ({ data }) => {
      // Every message of the protocol is a text.
      if (typeof data !== "string" || !inbox.add(data)) close()
    })
    for (const type of ["close", "error"] as const) {
      socket.addEventListener(type, () => {
        end()
        close()
      })
    }
  }).catch(() => undefined)

/** Headers that belong to the request which they were made for. */
const ofRequest = /^(?:accept|accept-encoding|connection|content-.*|host|x-stainless-.*)$/

/** The address and headers of the SDK's own request. Azure takes its key as a token here. */
const targetOf = async (sdk: OpenAI) => {
  const { req, url } = await sdk.buildRequest({ method: "post", path: "/responses", body: {} })
  const headers = Object.fromEntries([...req.headers].filter(([name]) => !ofRequest.test(name)))
  const { "api-key": key, ...others } = headers
  return {
    url: url.replace(/^http/, "ws"),
    headers: key === undefined ? headers : { ...others, authorization: `Bearer ${key}` }
  }
}

/** The request as a message: all of its fields, but for those of HTTP. */
const messageOf = ({ background: _, stream: _stream, stream_options: _options, ...body }: Body): string =>
  JSON.stringify({ type: "response.create", ...body })

/** Reads an event. The status of a failure is beside it. */
const readEvent = (origin: Origin, text: string): Result.Result<JsonObject, ModelError> => {
  if (text.length > largestEvent) return Result.fail(badResponse(origin, tooLarge("an event", largestEvent)))
  const event = objectOf(Result.getOrUndefined(parse(text)))
  if (event === undefined) return Result.fail(badResponse(origin, "a message of the WebSocket is no event"))
  if (text.length > 2 * deepest && isTooDeep(event)) return Result.fail(badResponse(origin, tooDeep))
  const error = objectOf(event["error"])
  const { status } = event
  return Result.succeed(error === undefined || status === undefined ? event : { ...event, error: { status, ...error } })
}

const codeOf = (event: JsonObject): string | undefined =>
  event["type"] === "error" ? stringOf((objectOf(event["error"]) ?? event)["code"]) : undefined

/**
 * The end of a turn: all of it was read, the server lost the response before, it closed the connection before the first
 * event, or the turn failed.
 */
type End = "whole" | "lost" | "closed" | { readonly failure: unknown }

const cut = { failure: new Error("the WebSocket was closed before the end of the turn") }

/** Reads the events of one turn. */
async function* readTurn(connection: Connection, origin: Origin): AsyncGenerator<JsonObject, End> {
  let length = 0
  let isBegun = false
  for (;;) {
    const text = await connection.next()
    if (text === undefined) return isBegun ? cut : "closed"
    length += text.length
    const read =
      length > largestBody
        ? Result.fail(badResponse(origin, tooLarge("the answer", largestBody)))
        : readEvent(origin, text)
    if (Result.isFailure(read)) {
      connection.close()
      return { failure: read.failure }
    }
    const event = read.success
    const code = codeOf(event)
    if (code === "websocket_connection_limit_reached") return isBegun ? cut : "closed"
    if (code === "previous_response_not_found" && !isBegun) return "lost"
    isBegun = true
    // The server drops the response that a failed turn went on from.
    if (/^response\.(?:completed|incomplete)$/.test(stringOf(event["type"]) ?? "")) connection.last = idOf(event)
    yield event
    if (isTerminal(event)) return "whole"
  }
}

/** Makes the warning of a server that takes no WebSocket. It appears once. */
export const makeSocketWarner = ({ model, provider }: Pick<Origin, "provider" | "model">) => {
  const warn = makeWarner(
    "websocket",
    (name) =>
      `the server of ${name} takes no WebSocket: turns go over HTTP. Leave webSocket out, or use another baseURL`
  )
  return () => warn([`${provider}/${model}`])
}

/** Options of the sender. */
interface Options {
  /** True if the server stores responses: a new connection goes on from them, too. */
  readonly isStored: boolean
  /** Warns that turns go over HTTP. */
  readonly warn: () => TurnPart | undefined
}

/** Opens the sender of a session. Its connection is opened by the first turn, and closed with the session. */
export const openSocketSender = ({ isStored, warn }: Options): Effect.Effect<Sender<Body>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    let connection: Connection | undefined
    let isRefused = false
    let turn: object | undefined

    const open = async (sdk: OpenAI, signal: AbortSignal): Promise<Connection | undefined> => {
      const now = clock.currentTimeMillisUnsafe()
      if (connection?.isOpen() === true && now - connection.openedAt < longestAge) return connection
      connection?.close()
      const { headers, url } = await targetOf(sdk)
      connection = await connect(url, headers, now, signal)
      return connection
    }

    /** Sends a turn over the connection. It ends as closed if no connection answered. */
    async function* overSocket(sdk: OpenAI, body: Body, { origin, whole }: More<Body>, signal: AbortSignal) {
      let end: End = "closed"
      for (let attempt = 0; attempt < mostAttempts && !signal.aborted; attempt++) {
        const used = await open(sdk, signal)
        if (used === undefined) return "closed"
        const isNext = used.last === body.previous_response_id || (isStored && end !== "lost")
        used.send(messageOf(isNext ? body : (whole ?? body)))
        used.last = undefined
        end = yield* readTurn(used, origin)
        if (end === "closed") used.close()
        else if (end !== "lost") return end
      }
      return "closed"
    }

    async function* send(sdk: OpenAI, body: Body, more: More<Body>, signal: AbortSignal): AsyncGenerator<unknown> {
      const { isTurn, whole } = more
      if (isTurn && turn === undefined && !isRefused) {
        const own = (turn = {})
        const leave = (): void => {
          if (turn === own) turn = undefined
        }
        const abandon = (): void => {
          // The protocol has no message that ends a turn.
          if (turn === own) connection?.close()
          leave()
        }
        signal.addEventListener("abort", abandon, { once: true })
        const end = yield* overSocket(sdk, body, more, signal)
        leave()
        if (typeof end === "object") return yield* lostTo(end.failure)
        if (end === "whole" || signal.aborted) return
        isRefused = true
      }
      yield* isStored ? sendNew(sdk, body, whole, signal) : sendNew(sdk, whole ?? body, undefined, signal)
    }

    yield* Effect.addFinalizer(() => Effect.sync(() => connection?.close()))
    return {
      send: (body, more) => (sdk, signal) => send(sdk, body, more, signal),
      warning: () => (isRefused ? warn() : undefined)
    }
  })
