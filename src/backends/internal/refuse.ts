/** The failure of backends whose options are wrong. */
import * as Effect from "effect/Effect"
import * as BackendError from "../../core/BackendError.ts"
import * as Options from "../../support/options/check.ts"

const fail = (where: string, problem: string): Effect.Effect<never, BackendError.BackendError> =>
  Effect.fail(BackendError.make("open", "/", { _tag: "Unsupported" }, { detail: `${where}: ${problem}` }))

/** Makes the check of a backend's options. */
export const makeEffectCheck = (where: string, shape: string) => Options.makeEffectCheck(where, shape, fail)

/** Makes the check of the options of a backend's layer. */
export const makeLayerCheck = (where: string, shape: string) => Options.makeLayerCheck(where, shape, fail)
