/** The chat in a real pseudo-terminal, seen through a terminal emulator. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { spawn } from "@lydell/node-pty"
import { afterEach } from "vitest"
import { makeTerminal } from "./xterm.ts"

export const makeFolder = (): string => mkdtempSync(join(tmpdir(), "deepagents-chat-"))

export interface Program {
  readonly type: (keys: string) => void
  /** Reads what the program writes, or stops reading. */
  readonly read: (isRead: boolean) => void
  readonly resize: (columns: number, rows: number) => void
  readonly text: () => string
  /** All that was written so far, as it was. */
  readonly raw: () => string
  /** Waits until this is on the screen or in the scrollback. */
  readonly until: (wanted: string | ((text: string) => boolean), what?: string) => Promise<void>
  readonly pid: number
  /** Waits for something in the last lines. */
  readonly draft: (isThere: (text: string) => boolean) => Promise<void>
  readonly kill: (signal: string) => void
  readonly ended: Promise<number>
}

const patience = Number(process.env["PATIENCE"] ?? 30_000)

export const start = (
  args: ReadonlyArray<string>,
  options: { readonly columns?: number; readonly rows?: number; readonly env?: Record<string, string> } = {}
): Program => {
  const { columns = 80, rows = 24 } = options
  const terminal = makeTerminal(columns, rows)
  const env: Record<string, string> = {
    PATH: process.env["PATH"] ?? "",
    HOME: tmpdir(),
    TERM: "xterm-256color",
    ...options.env
  }
  const running = spawn(process.execPath, [...args], {
    cols: columns,
    rows,
    env,
    cwd: tmpdir()
  })
  let raw = ""
  let isOver = false
  const changed = new Set<() => void>()
  const notify = () => {
    for (const listener of changed) listener()
  }
  running.onData((data) => {
    raw += data
    void terminal.write(data).then(notify)
  })
  terminal.onReply((data) => {
    if (!isOver) running.write(data)
  })
  const text = () => terminal.lines().join("\n")
  const waitFor = (isThere: () => boolean, what: () => string): Promise<void> =>
    new Promise((resolve, reject) => {
      const finish = () => {
        clearTimeout(timer)
        changed.delete(look)
      }
      const timer = setTimeout(() => {
        finish()
        reject(new Error(`not seen: ${what()}\n${text()}`))
      }, patience)
      const look = () => {
        if (!isThere()) return
        finish()
        resolve()
      }
      changed.add(look)
      look()
    })
  return {
    type: (keys) => running.write(keys),
    read: (isRead) => (isRead ? running.resume() : running.pause()),
    resize: (cols, height) => {
      terminal.resize(cols, height)
      running.resize(cols, height)
    },
    text,
    raw: () => raw,
    until: (wanted, what) =>
      waitFor(
        () => (typeof wanted === "string" ? text().includes(wanted) : wanted(text())),
        () => what ?? String(wanted)
      ),
    draft: (isThere) => waitFor(() => isThere(terminal.last(rows).join("\n")), String.bind(undefined, isThere)),
    pid: running.pid,
    kill: (signal) => running.kill(signal),
    ended: new Promise((resolve) =>
      running.onExit(({ exitCode }) => {
        isOver = true
        resolve(exitCode)
      })
    )
  }
}

/** Starts programs that are ended after the test. */
export const opener = () => {
  const running: Array<Program> = []
  afterEach(async () => {
    for (const one of running.splice(0)) {
      one.kill("SIGKILL")
      await one.ended
    }
  })
  return (...given: Parameters<typeof start>): Program => {
    const one = start(...given)
    running.push(one)
    return one
  }
}
