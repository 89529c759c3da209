/** Failures of the client of the protocol, as failures that say what to do. */
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import { valueAt } from "../../support/json/valueAt.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine } from "../../support/text/untrusted.ts"
import type { StdioServer } from "../McpConfig.ts"
import { McpError } from "../McpError.ts"
import { badAnswerCode, noAnswerCode } from "./wire/answers.ts"
import { tooLongCode } from "./wire/framing.ts"
import type { Outcome } from "./wire/http.ts"

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

const maxLength = 500

const address = /(https?:\/\/)(?:[^\s/?#@]{0,500}@)?([^\s?#"'()]{0,500})(\?[^\s"'()]*)?/giu

/** Removes the parts of addresses that are often secret: a name, a password, and the query. */
const withoutSecrets = (text: string): string =>
  cut(text, 4_000).replaceAll(
    address,
    (_, scheme: string, place: string, query: string | undefined) =>
      `${scheme}${place}${query === undefined ? "" : "?…"}`
  )

/** The words of an error, fit to be shown: a server may have written them. */
export const wordsOf = (error: unknown): string =>
  Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== ""
    ? cut(oneLine(withoutSecrets(error.message)), maxLength)
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

const make = (
  server: string,
  reason: Reason,
  words: string,
  cause: unknown,
  code?: number,
  advice = hint[reason]
): McpError => {
  const message = `the MCP server "${server}": ${words}${advice === undefined ? "" : ` (${advice})`}`
  return new McpError({ server, reason, message, cause, ...(code === undefined ? {} : { code }) })
}

const codeOf = (error: unknown): unknown => (Predicate.hasProperty(error, "code") ? error.code : undefined)

/** A failed request. */
export const ofRequest = (server: string, error: unknown, last?: Outcome): McpError => {
  const own = ownFailure(error) ?? ownFailure(last?.failure)
  if (own !== undefined) return own
  const code = codeOf(error)
  if (typeof code === "number") {
    if (code === noAnswerCode) return make(server, "Lost", wordsOf(error), error)
    const isBad = code === tooLongCode || code === badAnswerCode || /structured content/iu.test(wordsOf(error))
    return make(server, isBad ? "Invalid" : "Refused", wordsOf(error), error, code)
  }
  if (typeof code === "string") {
    const isDenied = last?.status === 401 || last?.status === 403
    return make(server, isDenied ? "Unauthorized" : (valueAt(codes, code) ?? "Lost"), wordsOf(error), error)
  }
  // The client goes through some of an answer by recursion.
  return error instanceof RangeError
    ? make(server, "Invalid", "what it answered lies too deep in itself", error)
    : make(server, "Lost", wordsOf(error), error)
}

const isNamed = (line: string): boolean => /^[\w.]{0,100}(?:error|exception)\b/iu.test(line)

/** The reason for which a process ended, in its own words: the line that names an error, else the last ones. */
const reasonIn = (stderr: string): string => {
  const lines = stderr.split("\n").map((line) => line.trim())
  return oneLine(withoutSecrets(lines.findLast(isNamed) ?? stderr.slice(-maxLength)))
}

/** The error at the bottom of a chain of causes. */
const rootOf = (error: unknown): unknown => {
  let inner = error
  for (let depth = 0; depth < 10 && Predicate.hasProperty(inner, "cause") && inner.cause !== undefined; depth++) {
    inner = inner.cause
  }
  return inner
}

/** The error of a failed connection attempt, before any request. `stderr` is the server's output during the attempt. */
export const ofConnect = (server: string, error: unknown, last: Outcome, stderr: string): McpError => {
  const failed = ofRequest(server, error, last)
  if (failed.reason !== "Lost" && failed.reason !== "Refused") return failed
  if (ownFailure(error) !== undefined) return failed
  if (last.failure === undefined && (last.status === 404 || last.status === 405)) {
    return make(server, "Unavailable", `there is no server of the protocol at its address (HTTP ${last.status})`, error)
  }
  const root = rootOf(last.failure ?? error)
  const words = root === error ? wordsOf(error) : `${wordsOf(error)}: ${wordsOf(root)}`
  const reason = reasonIn(stderr)
  return make(server, "Unavailable", reason === "" ? words : `${words}; it said: ${cut(reason, maxLength)}`, error)
}

const folder = (error: PlatformError): boolean => "module" in error.reason && error.reason.module === "FileSystem"

/** A process that could not be started. Its arguments are not told: they may be secret. */
export const notStarted = (server: string, { command, cwd }: StdioServer, error: PlatformError): McpError => {
  const { _tag } = error.reason
  const words = folder(error)
    ? `its folder ${JSON.stringify(cwd)} can't be used (${_tag})`
    : _tag === "NotFound"
      ? `there is no program "${command}" here: install it, or give its whole path`
      : _tag === "PermissionDenied"
        ? `"${command}" may not be run: it is no program, or you have no right to`
        : `"${command}" could not be started (${_tag})`
  return make(server, "Unavailable", words, error)
}

/** A call without a sign of life. */
export const tooSlow = (server: string, milliseconds: number, what: string): McpError =>
  make(server, "TimedOut", `${what} took more than ${milliseconds} ms`, undefined)

/** A handshake that took too long. */
export const tooSlowToConnect = (server: string, milliseconds: number, what: string): McpError => {
  const advice = "give it a longer `connectTimeout`, or see that it is a server of the protocol"
  return make(server, "TimedOut", `${what} took more than ${milliseconds} ms`, undefined, undefined, advice)
}

/** A server that asks without an end. */
export const tooMany = (server: string, words: string): McpError => make(server, "Invalid", words, undefined)

/** A server that reports no changes of resources. */
export const withoutSubscriptions = (server: string): McpError =>
  make(server, "Refused", "it offers no subscriptions to resources", undefined)

/** A connection that ended by itself. */
export const lostConnection = (server: string, words: string): McpError => make(server, "Lost", words, undefined)

/** A server that can't be used now. */
export const unavailable = (server: string, words: string, cause: unknown): McpError =>
  make(server, "Unavailable", words, cause)
