/**
 * The draft: editing with undo, a kill ring, words, history, and long pastes as chips. Wraps the editor of
 * `@earendil-works/pi-tui`.
 */
import { Editor } from "@earendil-works/pi-tui/dist/components/editor.js"
import { CURSOR_MARKER, type TUI } from "@earendil-works/pi-tui/dist/tui.js"
import type { Caret } from "../render/live.ts"
import { fit, widthOf } from "../render/style.ts"

export interface Input {
  /** Takes one key in the terminal's encoding. */
  readonly press: (data: string) => void
  readonly paste: (text: string) => void
  readonly insert: (text: string) => void
  /** The text, with chips replaced by the pasted text. */
  readonly text: () => string
  /** The shown lines and the cursor position. */
  readonly shown: () => { readonly lines: ReadonlyArray<string>; readonly line: number; readonly column: number }
  readonly set: (text: string) => void
  readonly remember: (text: string) => void
  readonly render: (columns: number) => DrawnInput
}

interface DrawnInput {
  readonly lines: ReadonlyArray<string>
  readonly caret: Caret
}

const same = (text: string): string => text

const theme = {
  borderColor: same,
  selectList: { selectedPrefix: same, selectedText: same, description: same, scrollInfo: same, noMatch: same }
}

const prompt = "› "

const drawnCursor = /\u001b\[7m(.*?)\u001b\[0m/u

export const makeInput = (options: {
  readonly rows: () => number
  readonly onSubmit: (text: string) => void
  readonly onChange: () => void
}): Input => {
  // The part of the interface that the editor uses.
  const tui = {
    requestRender: () => {},
    terminal: {
      get rows() {
        return options.rows()
      },
      columns: 80
    }
  } as unknown as TUI
  const editor = new Editor(tui, theme, { paddingX: 0 })
  editor.focused = true
  editor.onSubmit = options.onSubmit
  editor.onChange = options.onChange
  /** Caches the drawn lines until the text or the screen changes. */
  let last: { readonly columns: number; readonly rows: number; readonly value: DrawnInput } | undefined
  const changing =
    (change: (text: string) => void) =>
    (text: string): void => {
      last = undefined
      change(text)
    }
  return {
    press: changing((data) => editor.handleInput(data)),
    paste: changing((text) => editor.handleInput(`\u001b[200~${text.replaceAll("\u001b[201~", "")}\u001b[201~`)),
    insert: changing((text) => editor.insertTextAtCursor(text)),
    text: () => editor.getExpandedText(),
    shown: () => ({ lines: editor.getLines(), line: editor.getCursor().line, column: editor.getCursor().col }),
    set: changing((text) => editor.setText(text)),
    remember: changing((text) => editor.addToHistory(text)),
    render: (columns) => {
      const rows = options.rows()
      if (last?.columns === columns && last.rows === rows) return last.value
      const width = Math.max(4, columns - prompt.length)
      // The first and the last line are borders.
      const rawLines = editor.render(width).slice(1, -1)
      let caret: Caret = { row: 0, column: prompt.length }
      const lines = rawLines.map((line, row) => {
        const at = line.indexOf(CURSOR_MARKER)
        // The terminal's own cursor replaces the drawn one.
        const text = line.replace(CURSOR_MARKER, "").replace(drawnCursor, "$1").trimEnd()
        const fullLine = `${row === 0 ? prompt : "  "}${text}`
        if (at >= 0) caret = { row, column: prompt.length + widthOf(line.slice(0, at)) }
        return fit(fullLine, columns)
      })
      last = { columns, rows, value: { lines, caret } }
      return last.value
    }
  }
}
