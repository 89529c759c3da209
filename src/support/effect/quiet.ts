/** Keeps standard output free for a protocol. */
import * as Effect from "effect/Effect"

/** Redirects `console` to stderr until the scope ends. Any other line on stdout would break the protocol. */
export const quietConsole = Effect.acquireRelease(
  Effect.sync(() => {
    const { debug, dir, dirxml, error, info, log } = console
    const showError = (value: unknown) => error(value)
    Object.assign(console, { debug: error, dir: showError, dirxml: error, info: error, log: error })
    return { debug, dir, dirxml, info, log }
  }),
  (before) => Effect.sync(() => Object.assign(console, before))
)
