/**
 * Say in one sentence what this middleware does, as a user would search for it.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Skeleton } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({ name: "agent", prompt: "You help.", middleware: [Skeleton.make({ note: "Be brief." })] })
 * ```
 */
import * as Middleware from "../../src/core/Middleware.ts"

/** The name of this middleware. */
export const name = "Skeleton"

/** Options of {@link make}. */
export interface Options {
  /** Say what this option does, with its unit and its default. */
  readonly note: string
}

/** Adds a note to the system prompt of every model call. */
export const make = ({ note }: Options): Middleware.Middleware =>
  Middleware.make({
    name,
    wrapModelCall: (request, next) => next({ ...request, systemPrompt: `${request.systemPrompt}\n\n${note}` })
  })
