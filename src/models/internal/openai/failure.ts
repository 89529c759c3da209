/** Reads failures in the many shapes of OpenAI and its imitators. */
import * as Result from "effect/Result"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { type Origin, providerError, type ProviderFailure } from "../wire/errors.ts"
import { listOf, numberOf, objectOf, parse, stringOf } from "../wire/read.ts"

/** Reads a numeric code as an HTTP status, since proxies pass it on. */
const statusOf = (code: unknown): number | undefined => {
  const number = numberOf(code)
  return number !== undefined && number >= 400 && number < 600 ? number : undefined
}

/** Reads the messages of FastAPI's validation errors, without the quoted request. */
const detailsOf = (detail: unknown): string | undefined => {
  if (typeof detail === "string") return detail
  const messages = listOf(detail).flatMap((one) => {
    const { loc, msg } = objectOf(one) ?? {}
    const place = listOf(loc).filter((key) => typeof key === "string" || typeof key === "number")
    return typeof msg === "string" ? [place.length === 0 ? msg : `${place.join(".")}: ${msg}`] : []
  })
  return messages.length === 0 ? undefined : messages.join("; ")
}

/** Reads an error object, or a text in its place. */
export const failureOf = (error: unknown): ProviderFailure => {
  const it = objectOf(error)
  if (it === undefined) return { message: stringOf(error) }
  return {
    status: statusOf(it["code"]) ?? statusOf(it["status"]),
    code: stringOf(it["code"]),
    type: stringOf(it["type"]),
    message:
      stringOf(it["message"]) ??
      detailsOf(objectOf(it["message"])?.["detail"] ?? it["detail"]) ??
      stringOf(it["error"]) ??
      stringOf(it["error_message"])
  }
}

const namedCall = /(?:<function=|"name"\s*:\s*")([\w.-]{1,200})/

/**
 * Recognises Groq's failure for an unreadable call. It contains the model's text, so the call can be answered as
 * malformed and the model can repeat it.
 */
export const failedCall = (error: JsonObject): JsonObject | undefined => {
  const wrote = stringOf(error["failed_generation"])
  if (error["code"] !== "tool_use_failed" || wrote === undefined || wrote.trim() === "") return undefined
  const parsed = parse(wrote)
  const whole = objectOf(Result.isSuccess(parsed) ? (listOf(parsed.success)[0] ?? parsed.success) : undefined)
  const name = stringOf(whole?.["name"]) ?? namedCall.exec(wrote)?.[1] ?? ""
  return { function: { name, arguments: objectOf(whole?.["arguments"]) ?? objectOf(whole?.["parameters"]) ?? wrote } }
}

/** The body of a response that is an error, in the one shape that the SDK reads. */
export const errorBody = (text: string): string => {
  const parsed = parse(text)
  if (Result.isFailure(parsed)) {
    const isPage = text.trimStart().startsWith("<")
    return JSON.stringify({ error: { message: isPage ? "the server answered with a web page" : text } })
  }
  const body = objectOf(Array.isArray(parsed.success) ? parsed.success[0] : parsed.success)
  const error = body?.["error"] ?? body ?? text
  const { code, message, type } = failureOf(error)
  return JSON.stringify({ error: { code, message, type, failed_generation: objectOf(error)?.["failed_generation"] } })
}

/** Makes the error of a response. */
export const readFailure = (origin: Origin, text: string, { headers, status }: Response): ModelError => {
  const error = objectOf(Result.getOrUndefined(parse(errorBody(text))))?.["error"]
  return providerError(origin, { ...failureOf(error), status, headers })
}
