/** The options of a layer that are parameters of a request. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { objectOf } from "../wire/read.ts"

/** Every parameter that has an option; what else an option holds is not for the wire. */
const parameters = new Set([
  "temperature",
  "topP",
  "maxOutputTokens",
  "verbosity",
  "parallelToolCalls",
  "serviceTier",
  "promptCacheKey",
  "promptCacheRetention",
  "safetyIdentifier",
  "user",
  "metadata",
  "reasoning",
  "reasoningEffort",
  "thinking",
  "store",
  "stop"
])

const isJson = (value: unknown): value is Json =>
  value === null || ["string", "number", "boolean"].includes(typeof value) || Array.isArray(value) || isObject(value)

/** Picks the parameters that are set. */
export const jsonOf = (options: object): JsonObject => {
  const picked: Record<string, Json> = {}
  for (const [name, value] of Object.entries(options)) {
    if (parameters.has(name) && isJson(value)) picked[name] = value
  }
  return objectOf(picked) ?? {}
}
