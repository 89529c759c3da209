/**
 * The prompt of the chat before the chat: it is on the screen while all the rest is loaded. Keys that are pressed
 * meanwhile are kept for the chat, which takes the terminal over; if it never does, the prompt goes away.
 */
import * as Effect from "effect/Effect"
import { actionOf } from "../input/keys.ts"
import { type Listener, processTerminal, type Terminal } from "../screen/terminal.ts"
import { facts, idleHints } from "./facts.ts"

const nothing = (): void => {}
const nobody: Listener = { onKey: nothing, onPaste: nothing, onResize: nothing, onFocus: nothing }

/** The terminal, with a prompt on it; `undefined` where the chat has no screen. */
export const earlyPrompt = Effect.fnUntraced(function* (options: {
  readonly plain: boolean
  /** The text of the last line. Parts that are not plain ASCII are left out: nothing is known of their width yet. */
  readonly facts: ReadonlyArray<string>
}) {
  const { colours, isPlain, isTerminal } = facts()
  if (options.plain || isPlain || !isTerminal) return undefined
  const terminal = processTerminal()
  let backlog: Array<(listener: Listener) => void> = []
  let chat: Listener | undefined
  const keep = (give: (listener: Listener) => void): void => {
    if (chat === undefined) backlog.push(give)
    else give(chat)
  }
  const line = [...options.facts.filter((fact) => /^[\x20-\x7e]*$/.test(fact)), idleHints].join(" · ")
  const fitting = line.slice(0, Math.max(0, terminal.columns() - 1))
  const draw = (): void =>
    terminal.write(`› \r\n${colours ? `\u001b[2m${fitting}\u001b[22m` : fitting}\u001b[A\r\u001b[2C`)
  const erase = (): void => terminal.write("\r\u001b[J")
  yield* terminal.listen({
    onKey: (data) => {
      // Nobody is there yet who could be asked to leave.
      if (chat === undefined && actionOf(data) === "cancel") process.kill(process.pid, "SIGINT")
      else keep(({ onKey }) => onKey(data))
    },
    onPaste: (text) => keep(({ onPaste }) => onPaste(text)),
    onFocus: (isFocused) => keep(({ onFocus }) => onFocus(isFocused)),
    onResize: () => chat?.onResize()
  })
  yield* Effect.acquireRelease(Effect.sync(draw), () => Effect.sync(() => (chat === undefined ? erase() : undefined)))
  // Loading the rest holds up everything.
  yield* terminal.taken
  return {
    ...terminal,
    listen: (listener) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          erase()
          chat = listener
          for (const give of backlog) give(listener)
          backlog = []
        }),
        () =>
          Effect.sync(() => {
            chat = nobody
          })
      ),
    lend: (work) =>
      chat === undefined
        ? Effect.acquireUseRelease(
            Effect.sync(erase),
            () => terminal.lend(work),
            () => Effect.sync(draw)
          )
        : terminal.lend(work)
  } satisfies Terminal
})
