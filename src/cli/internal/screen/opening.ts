/** Opens the screen of a chat. */
import { setFlagsFromString } from "node:v8"
import * as Effect from "effect/Effect"
import type { Ui } from "../chat/ui.ts"
import { load } from "../markdown/highlight.ts"
import type { Terminal } from "./terminal.ts"

/**
 * Opens the screen until the scope closes, and gives the function that lends the terminal to another program. The terminal is
 * restored however the chat ends.
 */
export const openScreen = Effect.fnUntraced(function* (
  terminal: Terminal,
  ui: Ui,
  options: {
    readonly isVim: boolean
    /** The line behind the chat. */
    readonly lastLine: () => string | undefined
  }
) {
  yield* Effect.sync(keepSmall)
  yield* Effect.acquireRelease(
    terminal.listen({ onKey: ui.key, onPaste: ui.paste, onResize: debounceResize(ui.resized), onFocus: ui.focus }),
    () =>
      Effect.sync(() => {
        ui.close()
        const line = options.lastLine()
        if (line !== undefined) terminal.write(`${line}\n`)
      })
  )
  ui.setVim(options.isVim)
  ui.setAway(false)
  yield* Effect.forkScoped(Effect.map(Effect.promise(load), ui.setHighlight))
})

/** Gives the terminal to another program for a while. */
export const lendTerminal =
  (terminal: Terminal, ui: Ui) =>
  <A>(other: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.acquireUseRelease(
      Effect.sync(() => ui.setAway(true)),
      () => terminal.lend(other),
      () => Effect.sync(() => ui.setAway(false))
    )

/**
 * Makes V8 collect garbage sooner: a long chat keeps few objects and drops many. Without it, the space for young objects
 * doubles up to 64 MB, and 2,000 calls leave 30 MB more behind.
 */
const keepSmall = (): void => {
  setFlagsFromString("--semi-space-growth-factor=1")
  setFlagsFromString("--optimize-for-size")
}

/** Waits until a window that is dragged stands still. */
const debounceResize = (resized: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  return () => {
    clearTimeout(timer)
    timer = setTimeout(resized, 50)
  }
}
