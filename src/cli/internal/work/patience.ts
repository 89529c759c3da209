/** The patience of the program: a model that fails for a passing reason is asked again for ten minutes. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { ModelError } from "../../../core/ModelError.ts"
import * as ModelRetry from "../../../middleware/ModelRetry.ts"

/** The longest wait between two tries. A provider may demand a longer one. */
const longest = "30 seconds"

/** Reports whether another try rarely helps: after invalid answers, or where nothing listens on this machine. */
export const isHopeless = (error: ModelError, attempt: number): boolean =>
  (error.reason._tag === "BadResponse" && attempt > 4) || (error.isRefused && attempt > 2)

/** Waits 0.5 s, 1 s, 2 s and so on up to 30 s. */
export const waits = Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced(longest)]).pipe(
  Schedule.jittered,
  Schedule.setInputType<ModelError>()
)

const schedule = waits.pipe(Schedule.while(({ attempt, input }) => Effect.succeed(!isHopeless(input, attempt))))

/** Asks again after 0.5 s, 1 s, 2 s and so on up to 30 s, or when the provider says, for ten minutes. */
export const patience = () => ModelRetry.make({ schedule, within: "10 minutes" })
