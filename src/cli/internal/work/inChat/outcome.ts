/** The outcomes of slash commands. */
import * as Effect from "effect/Effect"
import type { CommandOutcome, Problem } from "../../chat/options.ts"
import type { Services } from "../app.ts"

export const show = (markdown: string): CommandOutcome => ({ _tag: "Show", markdown })

/** Makes the function that runs the work of commands in the services of this chat. */
export const makeRun = Effect.map(
  Effect.context<Services>(),
  (services) =>
    <A, E extends { readonly message: string }>(work: Effect.Effect<A, E, Services>): Effect.Effect<A, Problem> =>
      work.pipe(
        Effect.provideContext(services),
        Effect.mapError(({ message }): Problem => ({ message }))
      )
)
