/** Settings of the choice of tokens, and of the length of a turn. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { ThinkingLevel } from "../../internal/turn/thinking.ts"
import { errorOf, type Origin } from "./errors.ts"

/**
 * - `temperature`: 0 (the default) always takes the likeliest token, so that equal prompts get equal answers
 * - `topK`, `topP`, `minP`, `seed`: matter with a temperature only
 * - `repeatPenalty`: how much less likely a token of the last 64 is; 1 is not at all, which is the default
 * - `maxTokens`: the longest turn, in tokens; 4,096 by default
 * - `thinking`: whether a model that can think before it answers does, and how long; by default as its template has it
 */
export interface Settings {
  readonly temperature?: number | undefined
  readonly topK?: number | undefined
  readonly topP?: number | undefined
  readonly minP?: number | undefined
  readonly seed?: number | undefined
  readonly repeatPenalty?: number | undefined
  readonly maxTokens?: number | undefined
  readonly thinking?: ThinkingLevel | undefined
}

const number = Schema.optionalKey(Schema.Finite)

const Parameters = Schema.Struct({
  temperature: number,
  topK: number,
  topP: number,
  minP: number,
  seed: number,
  repeatPenalty: number,
  maxTokens: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
  thinking: Schema.optionalKey(
    Schema.Union([
      Schema.Literals(["off", "low", "medium", "high"]),
      Schema.Struct({ budget: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) })
    ])
  )
})

const decode = Schema.decodeUnknownEffect(Parameters)

/** The layer's settings, and over them what one request asks for. */
export const settingsFor = (
  origin: Origin,
  settings: Settings,
  parameters: JsonObject
): Effect.Effect<Settings, ModelError> =>
  Effect.mapBoth(decode(parameters), {
    onSuccess: (asked) => ({ ...settings, ...asked }),
    onFailure: (error) => errorOf(origin, { _tag: "InvalidRequest" }, `wrong parameters: ${error.message}`)
  })
