/** Background work of a chat: a turn of the agent, and commands. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { cut } from "../../../support/text/text.ts"
import type { Problem, CommandOutcome } from "./options.ts"
import type { Ui } from "./ui.ts"

export interface Works {
  /** Begins work. `doing` is shown while it runs. A failure is shown. */
  readonly begin: <R>(
    doing: string | undefined,
    work: Effect.Effect<CommandOutcome | undefined, Problem, R>
  ) => Effect.Effect<void, never, R | Scope.Scope>
  readonly isIdle: () => boolean
  readonly interrupt: Effect.Effect<void>
}

/** The longest message that is shown, in characters. A failure may quote its input. */
const longest = 4_000

/** The message of a failure or a defect. */
export const messageOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const message = Predicate.hasProperty(error, "message") ? error.message : error
  return cut(String(message), longest)
}

interface Work {
  readonly doing: string | undefined
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

export const makeWorks = (options: {
  readonly ui: Pick<Ui, "note" | "setBusy">
  readonly onOver: (next: CommandOutcome | undefined) => void
}): Works => {
  const { onOver, ui } = options
  const running = new Set<Work>()
  const tell = (): void => ui.setBusy([...running].findLast(({ doing }) => doing !== undefined)?.doing)
  return {
    begin: Effect.fnUntraced(function* (doing, work) {
      const own: Work = { doing, fiber: undefined }
      running.add(own)
      tell()
      own.fiber = yield* work.pipe(
        Effect.catchCause((cause) =>
          Effect.sync((): CommandOutcome | undefined => {
            if (!Cause.hasInterruptsOnly(cause)) ui.note("error", messageOf(cause))
            return undefined
          })
        ),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            running.delete(own)
            tell()
            onOver(Exit.isSuccess(exit) ? exit.value : undefined)
          })
        ),
        // Work that is interrupted before it begins must end too.
        Effect.forkScoped({ startImmediately: true })
      )
    }),
    isIdle: () => running.size === 0,
    interrupt: Effect.suspend(() =>
      Fiber.interruptAll([...running].flatMap(({ fiber }) => (fiber === undefined ? [] : [fiber])))
    )
  }
}
