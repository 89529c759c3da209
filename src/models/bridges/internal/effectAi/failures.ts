/**
 * Facts in the failure of a provider: status, waiting time, request id, and whether the history was too
 * long.
 */
import type * as AiError from "effect/ai/AiError"
import type * as Duration from "effect/Duration"
import type { Reason } from "../../../../core/ModelError.ts"
import { readRetryAfter } from "../../../../support/http/retryAfter.ts"
import { shortened } from "../../../internal/wire/errors.ts"
import { overflowOf as overflowIn } from "../../../internal/wire/overflow.ts"
import { longestSaid } from "../../../internal/wire/secrets.ts"

interface Http {
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
}

const requestIdHeaders = ["x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id"]

/** Reads the status and headers of an answer. Headers that were redacted stay so. */
export const httpOf = (reason: AiError.AiErrorReason): Http => {
  const response = "http" in reason ? reason.http?.response : undefined
  if (response === undefined) return {}
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(response.headers)) {
    if (typeof value === "string") headers.set(name.toLowerCase(), value)
  }
  const requestId = requestIdHeaders.map((name) => headers.get(name)).find((id) => id !== undefined)
  return { status: response.status, requestId, retryAfter: readRetryAfter(headers) }
}

/** A query string may hold a key. */
const withoutQuery = (text: string): string => text.replaceAll(/(https?:\/\/[^\s?)]{1,300})\?[^\s)]*/g, "$1")

/** Gives the provider's own words, for a person. */
export const detailOf = (reason: AiError.AiErrorReason): string => {
  const description = "description" in reason ? reason.description : undefined
  return shortened(withoutQuery((description ?? reason.message).slice(0, longestSaid)))
}

/**
 * Reports whether a provider rejected a request because the history is too long for the model, and what it said of it.
 */
export const overflowOf = (reason: {
  readonly description?: string | undefined
  readonly http?: { readonly body?: string | undefined } | undefined
}): Extract<Reason, { readonly _tag: "ContextOverflow" }> | undefined => {
  const text = [reason.description, reason.http?.body].map((part) => (part ?? "").slice(0, longestSaid)).join("\n")
  return overflowIn(text, text, undefined)
}
