/**
 * Failures of the client of the protocol, as failures that say what to do.
 */
import * as Predicate from "effect/Predicate"
import { cut } from "../../support/text.ts"
import { oneLine } from "../../support/untrusted.ts"
import { McpError } from "../McpError.ts"
import { tooLongCode } from "./framing.ts"
import type { Seen } from "./http.ts"

type Reason = McpError["reason"]

const codes: { readonly [code: string]: Reason } = {
  REQUEST_TIMEOUT: "TimedOut",
  CONNECTION_CLOSED: "Lost",
  NOT_CONNECTED: "Lost",
  SEND_FAILED: "Lost",
  INVALID_RESULT: "Invalid",
  CLIENT_HTTP_AUTHENTICATION: "Unauthorized",
  CLIENT_HTTP_FORBIDDEN: "Unauthorized"
}

const shown = 500

/** The words of an error, fit to be shown: a server may have written them. */
const wordsOf = (error: unknown): string =>
  Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== ""
    ? cut(oneLine(error.message), shown)
    : "it gave no reason"

const isMcpError = (error: unknown): error is McpError => error instanceof McpError

/** A failure of ours that is somewhere behind what others failed with. */
const ownFailure = (error: unknown): McpError | undefined => {
  let inner = error
  for (let depth = 0; depth < 10; depth++) {
    if (isMcpError(inner)) return inner
    if (!Predicate.hasProperty(inner, "cause")) return undefined
    inner = inner.cause
  }
  return undefined
}

const hint: { readonly [R in Reason]?: string } = {
  Unavailable: "check that its command or address is right, and that it runs",
  Unauthorized: "give it a header with a token, or a layer of authorisation",
  Lost: "whether the request had an effect is not known; the connection is made again by itself",
  TimedOut: "whether the request had an effect is not known; try again, or give it more time"
}

const make = (server: string, reason: Reason, words: string, cause: unknown, code?: number): McpError => {
  const advice = hint[reason]
  const message = `the MCP server "${server}": ${words}${advice === undefined ? "" : ` (${advice})`}`
  return new McpError({ server, reason, message, cause, ...(code === undefined ? {} : { code }) })
}

const codeOf = (error: unknown): unknown => (Predicate.hasProperty(error, "code") ? error.code : undefined)

/** A failed request. */
export const ofRequest = (server: string, error: unknown, seen?: Seen): McpError => {
  const own = ownFailure(error) ?? ownFailure(seen?.failure)
  if (own !== undefined) return own
  const code = codeOf(error)
  if (typeof code === "number") {
    const isBad = code === tooLongCode || /structured content/iu.test(wordsOf(error))
    return make(server, isBad ? "Invalid" : "Refused", wordsOf(error), error, code)
  }
  if (typeof code === "string") {
    const isDenied = seen?.status === 401 || seen?.status === 403
    return make(server, isDenied ? "Unauthorized" : (codes[code] ?? "Lost"), wordsOf(error), error)
  }
  return make(server, "Lost", wordsOf(error), error)
}

/** A connection that did not come about: nothing was asked yet. `log` is what the server said at last. */
export const ofConnect = (server: string, error: unknown, seen: Seen, log: string): McpError => {
  const failed = ofRequest(server, error, seen)
  if (failed.reason !== "Lost" && failed.reason !== "Refused") return failed
  if (ownFailure(error) !== undefined) return failed
  const last = oneLine(log.slice(-shown))
  const cause = seen.failure ?? error
  const words = Predicate.hasProperty(cause, "cause") ? `${wordsOf(error)}: ${wordsOf(cause.cause)}` : wordsOf(error)
  return make(server, "Unavailable", last === "" ? words : `${words}; it said: ${last}`, error)
}

/** A handshake that took too long. */
export const tooSlow = (server: string, milliseconds: number, what: string): McpError =>
  make(server, "TimedOut", `${what} took more than ${milliseconds} ms`, undefined)

/** A server that asks without an end. */
export const tooMany = (server: string, words: string): McpError => make(server, "Invalid", words, undefined)

/** A thing that a server does not offer. */
export const unsupported = (server: string, what: string): McpError =>
  make(server, "Refused", `it offers no ${what}`, undefined)

/** A connection that ended by itself. */
export const lost = (server: string, words: string): McpError => make(server, "Lost", words, undefined)

/** A server that can't be used now. */
export const unavailable = (server: string, words: string, cause: unknown): McpError =>
  make(server, "Unavailable", words, cause)
