/** Parameters of a request over those of the layer, by our names or the API's. */
import * as Result from "effect/Result"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { wellFormedObject } from "../turn/wellFormed.ts"
import { merge } from "../wire/read.ts"
import type { Body } from "./wire.ts"

/** Options whose names differ on the wire; a dot leads into an object. */
const names: { readonly [option: string]: string } = {
  maxTokens: "max_tokens",
  topP: "top_p",
  topK: "top_k",
  stopSequences: "stop_sequences",
  serviceTier: "service_tier",
  effort: "output_config.effort"
}

/** Fields that the codec writes itself, because the wire must carry the run's own conversation. */
const reserved = new Set(["model", "messages", "stream", "system", "tools", "tool_choice", "anthropic_version"])

/**
 * Lays parameters over a body, later ones over earlier ones; `null` takes one out. Fails with the name of a parameter
 * that is not the caller's to set.
 */
export const overlay = (body: Body, layers: ReadonlyArray<JsonObject>): Result.Result<Body, string> => {
  const fields = new Map<string, unknown>(Object.entries(body))
  for (const [name, value] of layers.flatMap((layer) => Object.entries(wellFormedObject(layer)))) {
    const [key = name, inner] = (valueAt(names, name) ?? name).split(".")
    if (reserved.has(key)) return Result.fail(key)
    const own = inner === undefined ? value : { [inner]: value }
    const before = fields.get(key)
    if (own === null) fields.delete(key)
    else fields.set(key, isObject(before) && isObject(own) ? merge(before, own) : own)
  }
  // The fields that a body is made of are as they were; about the rest the API decides.
  return Result.succeed(Object.fromEntries(fields) as unknown as Body)
}
