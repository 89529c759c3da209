/** Settings of the choice of tokens, and of the length of a turn. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { ThinkingLevel } from "../../internal/turn/thinking.ts"
import { errorOf, type Origin } from "./errors.ts"

/** Settings of the sampling. */
export interface Settings {
  /**
   * The randomness of the answer; 0 always takes the likeliest token, so equal prompts get equal answers. Default: 0.
   */
  readonly temperature?: number | undefined
  /** Samples from this many likeliest tokens; only with a temperature. Default: the library's own. */
  readonly topK?: number | undefined
  /**
   * Samples from the likeliest tokens with this share of probability; only with a temperature. Default: the library's
   * own.
   */
  readonly topP?: number | undefined
  /** Leaves out tokens below this share of the likeliest one; only with a temperature. Default: the library's own. */
  readonly minP?: number | undefined
  /** The seed of the sampling; only with a temperature. Default: random. */
  readonly seed?: number | undefined
  /** Makes the last 64 tokens less likely; 1 is not at all. Default: 1. */
  readonly repeatPenalty?: number | undefined
  /** The longest turn in tokens. Default: 4,096. */
  readonly maxTokens?: number | undefined
  /** Thinking before an answer, for models that can. Default: the template's own. */
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
      Schema.Literals(["off", "low", "medium", "high", "xhigh", "max"]),
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
    onSuccess: (requestSettings) => ({ ...settings, ...requestSettings }),
    onFailure: (error) => errorOf(origin, { _tag: "InvalidRequest" }, `wrong parameters: ${error.message}`)
  })
