/** Asks the decision model of the context for a choice, for a run. */
import type * as Decision from "effect/ai/Decision"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Run } from "../../core/Run.ts"
import { make as usageOf } from "../../core/Usage.ts"
import { defineDecisions, providedModel } from "../../support/decisions/service.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine } from "../../support/text/untrusted.ts"

/** A choice. It is clear if it is more probable than all others together. */
interface Choice<Label extends string> {
  readonly label: Label
  readonly isClear: boolean
}

/**
 * Asks for a choice about a text, and counts the usage for the run. `undefined` without a decision model, and after a
 * failure of it, which a `Warning` reports: then the caller asks its chat model.
 */
export const askChoice = <const Label extends string>(
  run: Run,
  warning: string,
  { text, ...question }: Omit<Decision.Classify<Label>, "_tag"> & { readonly text: string }
): Effect.Effect<Choice<Label> | undefined> =>
  Effect.flatMap(providedModel, (model) =>
    Option.isNone(model)
      ? Effect.undefined
      : Effect.gen(function* () {
          const definition = defineDecisions({ choice: { _tag: "Classify" as const, ...question } })
          const decided = yield* Effect.result(model.value.decide(definition, { input: text }))
          if (Result.isFailure(decided)) {
            const problem = cut(oneLine(decided.failure.message), 500)
            yield* run.warn(warning, `The decision model failed, so the chat model is asked: ${problem}`)
            return undefined
          }
          const { answers, usage } = decided.success
          const { inputTokens = 0, outputTokens = 0 } = usage
          yield* run.count(usageOf({ inputTokens, outputTokens }))
          const { label, probabilities } = answers.choice
          return { label, isClear: probabilities[label] > 0.5 }
        })
  )
