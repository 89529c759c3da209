/**
 * What can be read out of the failure of a provider: status, waiting time, request id, and whether the history was too
 * long.
 */
import type * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import type { Reason } from "../../../core/ModelError.ts"
import { longestSaid } from "../secrets.ts"

interface Http {
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
}

const requestIdHeaders = ["x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id"]

/** What the answer's status and headers say. Headers that were redacted stay so. */
export const httpOf = (reason: AiError.AiErrorReason): Http => {
  const response = "http" in reason ? reason.http?.response : undefined
  if (response === undefined) return {}
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(response.headers)) {
    if (typeof value === "string") headers.set(name.toLowerCase(), value)
  }
  const requestId = requestIdHeaders.map((name) => headers.get(name)).find((id) => id !== undefined)
  const milliseconds = Number(headers.get("retry-after-ms") ?? Number.NaN)
  const seconds = Number(headers.get("retry-after") ?? Number.NaN)
  const wait = Number.isFinite(milliseconds) ? milliseconds : seconds * 1000
  return {
    status: response.status,
    requestId,
    retryAfter: Number.isFinite(wait) && wait >= 0 ? Duration.millis(wait) : undefined
  }
}

/** A query string may hold a key. */
const withoutQuery = (text: string): string => text.replaceAll(/(https?:\/\/[^\s?)]{1,300})\?[^\s)]*/g, "$1")

/** The longest text of a provider that is passed on, in characters. */
const longest = 600

/** What the provider said, for a person. */
export const detailOf = (reason: AiError.AiErrorReason): string => {
  const description = "description" in reason ? reason.description : undefined
  const text = withoutQuery((description ?? reason.message).slice(0, longestSaid))
  return text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text
}

const overflows: ReadonlyArray<RegExp> = [
  /context_length_exceeded|exceed_context_size/i,
  /maximum context length/i,
  /(prompt|input|request) is too long/i,
  /exceeds? (the |your )?(model'?s? )?(available )?(maximum )?context (window|size|length)/i,
  /input token count .{0,100}exceeds/i
]

const counts: ReadonlyArray<RegExp> = [
  /(?<used>\d{1,15}) tokens > (?<limit>\d{1,15})/i,
  /maximum context length is (?<limit>\d{1,15}) tokens.{0,200}?(?<used>\d{1,15}) (?:input )?tokens/is,
  /input token count \(?(?<used>\d{1,15})\)? exceeds .{0,100}?\(?(?<limit>\d{1,15})\)?/i
]

/** Whether a provider rejected a request because the history is too long for the model, and what it said about it. */
export const overflowOf = (reason: {
  readonly description?: string | undefined
  readonly http?: { readonly body?: string | undefined } | undefined
}): Extract<Reason, { readonly _tag: "ContextOverflow" }> | undefined => {
  const text = [reason.description, reason.http?.body].map((said) => (said ?? "").slice(0, longestSaid)).join("\n")
  if (!overflows.some((pattern) => pattern.test(text))) return undefined
  const found = counts.map((pattern) => pattern.exec(text)?.groups).find((groups) => groups !== undefined)
  return found?.["limit"] === undefined
    ? { _tag: "ContextOverflow" }
    : { _tag: "ContextOverflow", limit: Number(found["limit"]), used: Number(found["used"]) }
}
