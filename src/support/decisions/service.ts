/**
 * Effect's service for decisions, by its key. The modules of `effect/ai` are imported as types alone, so a program that
 * provides no decision model loads nothing of them.
 */
import type * as Decision from "effect/ai/Decision"
import type { DecisionModel } from "effect/ai/DecisionModel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The key of `DecisionModel` in `effect/ai`. */
export const decisionModel: Context.Service<DecisionModel, DecisionModel> = Context.Service("effect/ai/DecisionModel")

/** The decision model of the context, if it has one. */
export const providedModel = Effect.serviceOption(decisionModel)

/** A definition of decisions on a text. Texts hold no images that the decision model would fetch. */
export const defineDecisions = <const Decisions extends Record<string, Decision.Any>>(
  decisions: Decisions
): Decision.Definition<typeof Schema.String, Decisions> => ({
  "~effect/ai/Decision": "~effect/ai/Decision",
  input: Schema.String,
  decisions
})
