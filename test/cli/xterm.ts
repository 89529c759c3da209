/** A terminal to look at: its output as lines of its scrollback and screen. */
import xterm from "@xterm/headless"

export interface Shown {
  readonly write: (data: string) => Promise<void>
  readonly resize: (columns: number, rows: number) => void
  /** All lines, soft-wrapped ones put together. */
  readonly lines: () => ReadonlyArray<string>
  /** So many lines at the end, as they are on the screen. */
  readonly last: (count: number) => ReadonlyArray<string>
  readonly onReply: (listener: (data: string) => void) => void
}

export const makeTerminal = (columns: number, rows: number): Shown => {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 50_000, allowProposedApi: true })
  return {
    write: (data) => new Promise((resolve) => terminal.write(data, resolve)),
    resize: (cols, height) => terminal.resize(cols, height),
    lines: () => {
      const { active } = terminal.buffer
      const lines: Array<string> = []
      for (let index = 0; index < active.length; index++) {
        const line = active.getLine(index)
        const text = line?.translateToString(true) ?? ""
        if (line?.isWrapped === true) lines.push((lines.pop() ?? "") + text)
        else lines.push(text)
      }
      while (lines.at(-1) === "") lines.pop()
      return lines
    },
    last: (count) => {
      const { active } = terminal.buffer
      const first = Math.max(0, active.length - count)
      return Array.from(
        { length: active.length - first },
        (_, index) => active.getLine(first + index)?.translateToString(true) ?? ""
      )
    },
    onReply: (listener) => terminal.onData(listener)
  }
}
