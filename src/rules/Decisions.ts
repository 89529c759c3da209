/**
 * Learn from the decisions of people when a decision model may decide in their place.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ApprovalClassifier } from "effect-deepagents/middleware"
 * import { Audit, Decisions, Inbox } from "effect-deepagents/rules"
 *
 * const rules = "Commands that only read may run. Commands that delete files may not."
 *
 * const classifying = Effect.gen(function* () {
 *   const calibration = Decisions.calibrate(yield* Decisions.labelled(Audit.records(), { rules }))
 *   const settle = calibration.settle({ wrongYes: 100, wrongNo: 20, person: 5 })
 *   return yield* Inbox.classify({ classify: ApprovalClassifier.byModel({ rules, settle }) })
 * })
 * ```
 *
 * With fewer than 200 labels, or fewer than ten of each outcome, every decision is left to a person.
 */
import type { AiError } from "effect/ai/AiError"
import type { DecisionModel } from "effect/ai/DecisionModel"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { estimate } from "../middleware/ApprovalClassifier.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import type { Record } from "./Audit.ts"
import * as Labels from "./internal/calibration.ts"
import type { Costs, LabelledDecision } from "./internal/calibration.ts"
import { draw } from "./internal/diagram.ts"
import { decisionsByPeople } from "./internal/labels.ts"
import * as shapes from "./internal/shapes.ts"

export type { Costs, LabelledDecision } from "./internal/calibration.ts"

/** The calibration of a decision model by labels. */
export interface Calibration {
  /** The number of labels. */
  readonly count: number
  /** True with at Labels.least 200 labels, ten of each outcome. Else `settle` leaves everything to a person. */
  readonly isReady: boolean
  /** The expected calibration error of stated and of calibrated probabilities, the latter on labels that were left out. */
  readonly error: { readonly stated: number; readonly calibrated: number }
  /** The calibrated probability of a stated one. */
  readonly probability: (stated: number) => number
  /** The calibrated probabilities from which an answer is yes, and up to which it is no, by expected cost. */
  readonly thresholds: (costs: Costs) => Labels.Thresholds
  /** Settles stated probabilities by expected cost. Costs that are no positive numbers leave all to a person. */
  readonly settle: (costs: Costs) => (stated: number) => Labels.Settlement
  /** A small reliability diagram: stated against observed probabilities. */
  readonly svg: (title?: string) => string
}

/** Fits calibrated probabilities to labels. Labels without a probability from 0 to 1 are left out. */
export const calibrate = (labelled: ReadonlyArray<LabelledDecision>): Calibration => {
  const sound = Labels.soundOf(labelled)
  const yes = sound.filter(({ isYes }) => isYes).length
  const isReady = sound.length >= Labels.least.labels && Math.min(yes, sound.length - yes) >= Labels.least.each
  const fitted = Labels.fit(sound)
  const error = { stated: Labels.errorOf(sound), calibrated: Labels.errorOf(Labels.crossFitted(sound)) }
  return {
    count: sound.length,
    isReady,
    error,
    probability: fitted.map,
    thresholds: Labels.thresholdsOf,
    settle: (costs) => (isReady ? Labels.settleBy(fitted, Labels.thresholdsOf(costs)) : () => "person"),
    svg: (title = "Calibration") =>
      draw({ title, bins: Labels.binsOf(sound), fit: fitted, count: sound.length, ...error })
  }
}

const refuse = makeEffectCheck("Decisions.labelled", shapes.decisionsLabelled)

/**
 * Asks the decision model about approvals that people decided on, and pairs its probabilities with their decisions. An
 * approval is a yes; a rejection, an edit or an answer in the call's place is a no. Left out are decisions of programs and
 * of time, questions, requests for a person alone, and requests without an answer of the model.
 */
export const labelled = <E, R>(
  records: Stream.Stream<Pick<Record, "request" | "decision" | "isAsShown">, E, R>,
  options: {
    /** The rules in words, the same text as for the classifier. */
    readonly rules: string
    /** The most decisions, the newest ones. Each costs a request to the model. Default: 1,000. */
    readonly limit?: number | undefined
    /** Requests to the model at once. Default: 8. */
    readonly concurrency?: number | undefined
  }
): Effect.Effect<ReadonlyArray<LabelledDecision>, E | AiError, R | DecisionModel> =>
  refuse(options) ??
  Effect.gen(function* () {
    const { concurrency, limit = 1_000, rules } = options
    const decided = yield* decisionsByPeople(records, limit)
    const probabilities = yield* estimate(
      decided.map(({ request }) => request),
      { rules, concurrency }
    )
    return decided.flatMap(({ isYes }, index) => {
      const probability = probabilities[index]
      return probability === undefined ? [] : [{ probability, isYes }]
    })
  })
