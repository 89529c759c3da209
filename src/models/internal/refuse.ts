/** The failure of models whose options are wrong. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { ModelError } from "../../core/ModelError.ts"
import * as Options from "../../support/options/check.ts"

const fail = (provider: string, problem: string, options: unknown): Effect.Effect<never, ModelError> => {
  const model = Predicate.hasProperty(options, "model") && typeof options.model === "string" ? options.model : "model"
  return Effect.fail(new ModelError({ provider, model, reason: { _tag: "InvalidRequest" }, detail: problem }))
}

/** Makes the check of a model's options. */
export const makeEffectCheck = (provider: string, shape: string) => Options.makeEffectCheck(provider, shape, fail)
