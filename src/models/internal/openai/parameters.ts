/** Sampling and service parameters: their names here and on the wire, and the precedence of layers. */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { wellFormedObject } from "../turn/wellFormed.ts"
import { merge } from "../wire/read.ts"

/** Effort of a reasoning model. Each model takes some of these values. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max"

/** Parameters of both OpenAI APIs. Only those that are set are sent. */
export interface Parameters {
  /** The randomness of the answer. Default: the API's own. */
  readonly temperature?: number | undefined
  /** Samples from the likeliest tokens with this share of probability. Default: the API's own. */
  readonly topP?: number | undefined
  /** The most tokens that an answer may have, its reasoning included. */
  readonly maxOutputTokens?: number | undefined
  /** The length of answers. Default: the API's own. */
  readonly verbosity?: "low" | "medium" | "high" | undefined
  /** Lets the model ask for several tools in one turn. */
  readonly parallelToolCalls?: boolean | undefined
  /** The processing tier. Default: the project's own. */
  readonly serviceTier?: "auto" | "default" | "flex" | "scale" | "priority" | "fast" | undefined
  /**
   * Requests with the same key are sent to the same cache. Default of `OpenAiChatModel` at OpenAI and Azure: a hash of
   * the beginning of the conversation.
   */
  readonly promptCacheKey?: string | undefined
  /** The lifetime of the prompt cache. Default: the API's own. */
  readonly promptCacheRetention?: "in_memory" | "24h" | undefined
  /** A stable id of the person at the other end, hashed. */
  readonly safetyIdentifier?: string | undefined
  /** An opaque id of the end user. Default: none. */
  readonly user?: string | undefined
  /** Labels that OpenAI stores with the request. Default: none. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

/** Names that differ on the wire; a dot leads into an object. */
export type WireNames = { readonly [name: string]: string }

export const commonNames: WireNames = {
  topP: "top_p",
  parallelToolCalls: "parallel_tool_calls",
  serviceTier: "service_tier",
  promptCacheKey: "prompt_cache_key",
  promptCacheRetention: "prompt_cache_retention",
  safetyIdentifier: "safety_identifier"
}

/** Objects are joined one level deep, so that a request can change the effort and keep the summary. */
const setParameter = (body: Record<string, Json>, key: string, value: Json): void => {
  const before = body[key]
  body[key] = isObject(before) && isObject(value) ? merge(before, value) : value
}

const withoutNulls = (body: { readonly [key: string]: Json }): JsonObject =>
  Object.fromEntries(
    Object.entries(body).flatMap(([key, value]) => {
      if (value === null) return []
      return [[key, isObject(value) ? withoutNulls(value) : value]]
    })
  )

/**
 * Merges parameters. Later ones win, and `null` removes one. Unknown names belong to the API. A name that the codec
 * writes itself is rejected, because the wire must carry the run's own history.
 */
export const overlay = (
  layers: ReadonlyArray<JsonObject>,
  names: WireNames,
  reserved: ReadonlySet<string>
): Result.Result<JsonObject, string> => {
  const body: Record<string, Json> = {}
  for (const layer of layers) {
    for (const [name, value] of Object.entries(layer)) {
      const [key = name, inner] = (names[name] ?? name).split(".")
      if (reserved.has(key)) return Result.fail(key)
      setParameter(body, key, inner === undefined ? value : { [inner]: value })
    }
  }
  return Result.succeed(wellFormedObject(withoutNulls(body)))
}
