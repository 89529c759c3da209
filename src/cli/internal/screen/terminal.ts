/** The terminal of the process: keys as they come in, and how it is left. */
import { setKittyProtocolActive } from "@earendil-works/pi-tui/dist/keys.js"
import { StdinBuffer } from "@earendil-works/pi-tui/dist/stdin-buffer.js"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Output } from "./screen.ts"
import { makeWriter, type Put, putTo, stuckAfter, type Writer } from "./writer.ts"

export interface Listener {
  readonly onKey: (data: string) => void
  readonly onPaste: (text: string) => void
  readonly onResize: () => void
  readonly onFocus: (isFocused: boolean) => void
}

export interface Terminal extends Output, Pick<Writer, "isBusy" | "onTaken"> {
  /** Takes the terminal over, until the scope is closed. */
  readonly listen: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /** Waits until everything is taken; not for a terminal that takes nothing. */
  readonly taken: Effect.Effect<void>
  /** Runs something that has the terminal for itself. */
  readonly lend: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * Bracketed paste, focus events, and keys that can be told apart where the terminal knows how: it is asked for the
 * protocol of kitty, then for what every terminal answers.
 */
const on = "\u001b[?2004h\u001b[?1004h\u001b[>1u\u001b[?u\u001b[c"
const off = "\u001b[>4;0m\u001b[<u\u001b[?1004l\u001b[?2004l\u001b[?25h"

/** The older way to tell keys apart, of xterm and tmux. */
const otherKeys = "\u001b[>4;2m"

const knowsKeys = /^\u001b\[\?\d+u$/
const isThere = /^\u001b\[\?[\d;]*c$/

/** The terminal that the process was started in. */
export const processTerminal = (): Terminal => {
  const { stdin, stdout } = process
  // The console of Windows takes other bytes than those of the text, and only node's own stream knows which.
  const put: Put =
    process.platform === "win32"
      ? (bytes, done) => void stdout.write(bytes, (error) => done(error, bytes.length))
      : putTo(1)
  const writer = makeWriter(put, (error) => stdout.emit("error", error))
  const raw = (isRaw: boolean): void => {
    if (stdin.isTTY) stdin.setRawMode(isRaw)
  }
  const enter = (): void => {
    raw(true)
    stdin.resume()
    writer.write(on)
  }
  const release = (): void => {
    raw(false)
    stdin.pause()
  }
  const taken = Effect.callback<void>((resume) => {
    if (!writer.isBusy()) return resume(Effect.void)
    const done = (): void => {
      forget()
      clearTimeout(timer)
      resume(Effect.void)
    }
    const forget = writer.onTaken(done)
    const timer = setTimeout(done, stuckAfter)
  })
  const exit = Effect.suspend(() => {
    writer.write(off)
    return Effect.andThen(taken, Effect.sync(release))
  })
  const crash = (): void => {
    const rest = writer.rest()
    if (rest !== undefined) stdout.write(rest + off)
    release()
  }
  return {
    write: writer.write,
    isBusy: writer.isBusy,
    onTaken: writer.onTaken,
    taken,
    columns: () => stdout.columns ?? 80,
    rows: () => stdout.rows ?? 24,
    listen: ({ onFocus, onKey, onPaste, onResize }) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const buffer = new StdinBuffer()
          let knows = false
          buffer.on("data", (data) => {
            if (knowsKeys.test(data)) {
              knows = true
              return setKittyProtocolActive(data !== "\u001b[?0u")
            }
            if (isThere.test(data)) return knows ? undefined : writer.write(otherKeys)
            if (data === "\u001b[I" || data === "\u001b[O") return onFocus(data === "\u001b[I")
            onKey(data)
          })
          buffer.on("paste", onPaste)
          const feed = (data: string): void => buffer.process(data)
          // A character may come in two chunks.
          stdin.setEncoding("utf8")
          stdin.on("data", feed)
          stdout.on("resize", onResize)
          // The shell gets its terminal back, whatever ends the process.
          process.on("exit", crash)
          enter()
          return Effect.suspend(() => {
            process.off("exit", crash)
            stdout.off("resize", onResize)
            stdin.off("data", feed)
            buffer.destroy()
            return exit
          })
        }),
        (left) => left
      ),
    lend: (work) =>
      Effect.acquireUseRelease(
        exit,
        () => work,
        () => Effect.sync(enter)
      )
  }
}
