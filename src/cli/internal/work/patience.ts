/** The patience of the program: a model that fails for a passing reason is asked again for ten minutes. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { ModelError } from "../../../core/ModelError.ts"
import * as ModelRetry from "../../../middleware/ModelRetry.ts"

/** The longest wait between two tries. A provider may demand a longer one. */
const longest = "30 seconds"

/** An answer that is not valid rarely gets better, so it has fewer tries. */
export const invalidTries = 4

/** Waits 0.5 s, 1 s, 2 s and so on up to 30 s. */
export const waits = Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced(longest)]).pipe(
  Schedule.jittered,
  Schedule.setInputType<ModelError>()
)

const schedule = waits.pipe(
  Schedule.while(({ attempt, input }) => Effect.succeed(input.reason._tag !== "BadResponse" || attempt <= invalidTries))
)

/** Asks again after 0.5 s, 1 s, 2 s and so on up to 30 s, or when the provider says, for ten minutes. */
export const patience = () => ModelRetry.make({ schedule, within: "10 minutes" })
