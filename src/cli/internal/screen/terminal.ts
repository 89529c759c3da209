/** The terminal of the process: its keys, its modes, and their restoration. */
import { setKittyProtocolActive } from "@earendil-works/pi-tui/dist/keys.js"
import { StdinBuffer } from "@earendil-works/pi-tui/dist/stdin-buffer.js"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Output } from "./screen.ts"
import { makeWriter, type WriteBytes, putTo, stuckAfter, type Writer } from "./writer.ts"

export interface Listener {
  readonly onKey: (data: string) => void
  readonly onPaste: (text: string) => void
  readonly onResize: () => void
  readonly onFocus: (isFocused: boolean) => void
}

export interface Terminal extends Output, Pick<Writer, "isBusy" | "onTaken"> {
  /** Takes the terminal over until the scope closes. */
  readonly listen: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /** Waits until the terminal took all output, unless it is stuck. */
  readonly taken: Effect.Effect<void>
  /** Runs a program that needs the terminal for itself. */
  readonly lend: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * Bracketed paste, focus events, and distinct keys by the kitty protocol. The last query is answered by every
 * terminal.
 */
const on = "\u001b[?2004h\u001b[?1004h\u001b[>1u\u001b[?u\u001b[c"
const off = "\u001b[>4;0m\u001b[<u\u001b[?1004l\u001b[?2004l\u001b[?25h"

/** Distinct keys by the older protocol of xterm and tmux. */
const otherKeys = "\u001b[>4;2m"

const knowsKeys = /^\u001b\[\?\d+u$/
const isThere = /^\u001b\[\?[\d;]*c$/

/** Opens the terminal of the process. */
export const processTerminal = (): Terminal => {
  const { stdin, stdout } = process
  // The console of Windows needs an encoding that only node's stream knows.
  const writeBytes: WriteBytes =
    process.platform === "win32"
      ? (bytes, done) => void stdout.write(bytes, (error) => done(error, bytes.length))
      : putTo(1)
  const writer = makeWriter(writeBytes, (error) => stdout.emit("error", error))
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
  const waitForWriter = Effect.callback<void>((resume) => {
    if (!writer.isBusy()) return resume(Effect.void)
    const finish = (): void => {
      forget()
      clearTimeout(timer)
      resume(Effect.void)
    }
    const forget = writer.onTaken(finish)
    const timer = setTimeout(finish, stuckAfter)
  })
  const exit = Effect.suspend(() => {
    writer.write(off)
    return Effect.andThen(waitForWriter, Effect.sync(release))
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
    taken: waitForWriter,
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
          // A character may be split over two chunks.
          stdin.setEncoding("utf8")
          stdin.on("data", feed)
          stdout.on("resize", onResize)
          // Restores the terminal for the shell, however the process ends.
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
