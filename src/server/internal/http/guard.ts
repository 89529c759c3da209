/** Refuses requests of pages and forms of others, before anything of their body is read. */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import { cut } from "../../../support/text/text.ts"
import { Problem } from "./problem.ts"

/** Decides which requests come in. */
export interface Guard {
  /** Names of the server, in small letters; one without a port has all ports. */
  readonly hosts: ReadonlySet<string>
  /** Origins of other pages that may call, in small letters. */
  readonly origins: ReadonlySet<string>
  /** The most bytes of a body. */
  readonly maxBody: number
}

const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

/** The options of {@link make}. */
export interface GuardOptions {
  readonly hosts?: ReadonlyArray<string> | undefined
  readonly origins?: ReadonlyArray<string> | undefined
  readonly maxBody?: number | undefined
}

const lower = (texts: ReadonlyArray<string>): ReadonlySet<string> => new Set(texts.map((text) => text.toLowerCase()))

/** Makes a guard. */
export const make = ({ hosts = loopback, maxBody = 8 << 20, origins = [] }: GuardOptions): Guard => ({
  hosts: lower(hosts),
  origins: lower(origins),
  maxBody
})

/** Gives the host that a request names. Requests of a Web handler may have it in their address alone. */
export const hostOf = ({ headers, originalUrl }: HttpServerRequest): string =>
  (headers["host"] ?? /^https?:\/\/([^/?#]*)/iu.exec(originalUrl)?.[1] ?? "").toLowerCase()

/** Gives the name without its port. */
const nameOf = (host: string): string => host.replace(/:\d*$/, "")

/** Reports whether the page that asks is the server's own or allowed. No origin at all is no page of others. */
const isAllowed = ({ origins }: Guard, { headers }: HttpServerRequest, host: string): boolean => {
  const origin = headers["origin"]?.toLowerCase()
  if (origin === undefined) return headers["sec-fetch-site"] !== "cross-site"
  return origins.has(origin) || origin === `http://${host}` || origin === `https://${host}`
}

/** Reports whether a request has no body at all. */
const isEmpty = ({ headers }: HttpServerRequest): boolean =>
  headers["content-type"] === undefined &&
  headers["transfer-encoding"] === undefined &&
  (headers["content-length"] ?? "0") === "0"

/** Reports whether the request names several hosts. A server in front of this one may have looked at another one. */
const hasManyHosts = ({ source }: HttpServerRequest): boolean => {
  const raw: unknown = "rawHeaders" in source ? source.rawHeaders : undefined
  if (!Array.isArray(raw)) return false
  let count = 0
  for (let at = 0; at < raw.length; at += 2) if (String(raw[at]).toLowerCase() === "host") count++
  return count > 1
}

/**
 * Checks the host, the origin and the type of the body, in this order. `isBare` is the mark of a route whose clients send
 * no body and no type.
 */
export const check = (guard: Guard, request: HttpServerRequest, isBare = false): Problem | undefined => {
  const { headers, method } = request
  const host = hostOf(request)
  if (hasManyHosts(request) || (!guard.hosts.has(host) && !guard.hosts.has(nameOf(host)))) {
    return new Problem({
      status: 421,
      code: "Host",
      detail: "This host is not served here; add it to the hosts of the server."
    })
  }
  const isSafe = (method === "GET" || method === "HEAD") && headers["upgrade"] === undefined
  if (!isSafe && !isAllowed(guard, request, host)) {
    return new Problem({
      status: 403,
      code: "Origin",
      detail: "Pages of other origins may not do this; add the origin to the origins of the server."
    })
  }
  const isTyped = method === "POST" || method === "PATCH"
  if (
    isTyped &&
    !(isBare && isEmpty(request)) &&
    headers["content-type"]?.split(";")[0]?.trim().toLowerCase() !== "application/json"
  ) {
    return new Problem({ status: 415, code: "ContentType", detail: "Send the body as application/json." })
  }
  return undefined
}

/** The headers that let an allowed page read the response; none without allowed origins. */
const corsOf = ({ origins }: Guard, { headers }: HttpServerRequest): Readonly<Record<string, string>> => {
  const origin = headers["origin"]
  if (origins.size === 0) return {}
  const isKnown = origin !== undefined && origins.has(origin.toLowerCase())
  return isKnown
    ? { vary: "origin", "access-control-allow-origin": origin, "access-control-allow-credentials": "true" }
    : { vary: "origin" }
}

/** Lets allowed pages read a response. */
export const addCors = (
  guard: Guard,
  request: HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse =>
  guard.origins.size === 0 ? response : HttpServerResponse.setHeaders(response, corsOf(guard, request))

/** Answers the question of an allowed page whether it may call. */
export const preflight = HttpServerResponse.empty({
  status: 204,
  headers: {
    "access-control-allow-methods": "GET, POST, PATCH, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id",
    "access-control-max-age": "600"
  }
})

/** The time that a client has to send a body. */
const patience = "30 seconds"

const tooLarge = (limit: number) =>
  new Problem({
    status: 413,
    code: "TooLarge",
    detail: `A body has at most ${limit} bytes.`,
    headers: { connection: "close" }
  })

const invalid = (detail: string) => new Problem({ status: 400, code: "InvalidBody", detail })

/** Reads the bytes of a body, within bounds of size and time. */
export const readBytes = (
  maxBody: number,
  request: HttpServerRequest
): Effect.Effect<Uint8Array<ArrayBuffer>, Problem> => {
  if (Number(request.headers["content-length"] ?? 0) > maxBody) return Effect.fail(tooLarge(maxBody))
  return request.arrayBuffer.pipe(
    Effect.provideService(MaxBodySize, ByteSize.bytes(maxBody)),
    Effect.mapBoth({
      onFailure: ({ reason }) =>
        reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
          ? tooLarge(maxBody)
          : invalid("The body can't be read."),
      onSuccess: (buffer) => new Uint8Array(buffer)
    }),
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () =>
        Effect.fail(
          new Problem({
            status: 408,
            code: "Timeout",
            detail: "The body did not come in time.",
            headers: { connection: "close" }
          })
        )
    })
  )
}

/** The most levels of JSON in a body: deeper values overflow the stack of those who work on them. */
const deepest = 256

/** Reports whether a JSON text is nested too deeply. */
const isDeep = (text: string): boolean => {
  let depth = 0
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const one = text.charCodeAt(at)
    // A backslash takes the next character with it.
    if (isInText && one === 0x5c) at++
    else if (one === 0x22) isInText = !isInText
    else if (!isInText && (one === 0x5b || one === 0x7b) && ++depth > deepest) return true
    else if (!isInText && (one === 0x5d || one === 0x7d)) depth--
  }
  return false
}

const decoder = new TextDecoder()

/** Decodes a JSON text. */
const decodeJson = <A>(
  text: string,
  schema: Schema.ConstraintDecoder<A>,
  onExcessProperty: "error" | "ignore"
): Effect.Effect<A, Problem> => {
  if (isDeep(text)) return Effect.fail(invalid(`A body has at most ${deepest} levels of arrays and objects.`))
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema), { onExcessProperty })
  return Effect.mapError(decode(text), ({ message }) => invalid(cut(message, 1_000)))
}

/** Decodes the JSON of a body. An empty body is an empty object. */
export const decodeBody = <A>(
  bytes: Uint8Array,
  schema: Schema.ConstraintDecoder<A>,
  onExcessProperty: "error" | "ignore"
): Effect.Effect<A, Problem> => {
  const text = decoder.decode(bytes)
  return decodeJson(text.trim() === "" ? "{}" : text, schema, onExcessProperty)
}

/** Reads a JSON body of a schema, which names all keys. */
export const readBody = <A>(
  { maxBody }: Guard,
  request: HttpServerRequest,
  schema: Schema.ConstraintDecoder<A>
): Effect.Effect<A, Problem> =>
  Effect.flatMap(readBytes(maxBody, request), (bytes) => decodeBody(bytes, schema, "error"))

/** Reads a JSON text of a schema, which names all keys. */
export const decodeText = <A>(
  { maxBody }: Guard,
  text: string,
  schema: Schema.ConstraintDecoder<A>
): Effect.Effect<A, Problem> =>
  text.length > maxBody ? Effect.fail(tooLarge(maxBody)) : decodeJson(text, schema, "error")
