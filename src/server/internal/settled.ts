/** The end of the work on mail, for listeners that store it before the mail is gone. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Request } from "../../core/Approval.ts"

/** Work that ended, or waits for a decision. */
export interface SettledWork {
  readonly tenant: string
  /** The thread, as its tenant knows it. */
  readonly threadId: string
  /** The id of the input or the decision. */
  readonly id: string
  readonly agent: string
  /** The reason of the end. Absent if the run had ended before a crash. */
  readonly outcome: string | undefined
  /** The requests that wait for a decision. */
  readonly pending: ReadonlyArray<Request>
}

/** Hears of settled work. After a crash it may hear of the same work again. */
export const OnSettled = Context.Reference<(settled: SettledWork) => Effect.Effect<void>>(
  "effect-deepagents/OnSettled",
  {
    defaultValue: () => () => Effect.void
  }
)
