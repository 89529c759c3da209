/** Vim keys for the draft: a normal mode beside the usual one, made of the keys that the editor has. */
import type { Input } from "./input.ts"
import { letterOf, pressed } from "./keys.ts"

export interface Vim {
  readonly mode: () => "insert" | "normal"
  /** Takes a key of the draft. `false` if the chat or the editor should have it. */
  readonly key: (data: string) => boolean
  /** Begins the next draft in insert mode. */
  readonly insert: () => void
}

/** Keys of the editor. */
const keys = {
  left: "\u001b[D",
  right: "\u001b[C",
  up: "\u001b[A",
  down: "\u001b[B",
  start: "\u0001",
  end: "\u0005",
  cut: "\u000b",
  delete: "\u001b[3~",
  back: "\u007f",
  undo: "\u001f"
} as const

interface Place {
  readonly line: number
  readonly column: number
}

/** A word, or a run of other signs, with the column behind it. */
interface Word extends Place {
  readonly end: number
}

const wordsOf = (lines: ReadonlyArray<string>): ReadonlyArray<Word> =>
  lines.flatMap((text, line) =>
    [...text.matchAll(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]+/gu)].map(({ 0: word, index: column }) => ({
      line,
      column,
      end: column + word.length
    }))
  )

const isBehind = (place: Place, { column, line }: Place): boolean =>
  place.line > line || (place.line === line && place.column > column)

/** A deleted text. Whole lines are put below the line. */
interface Register {
  readonly text: string
  readonly isLine: boolean
}

/** The most presses for one change that is undone: one for each character of a word. */
const mostPresses = 1_000

export const makeVim = (input: Input): Vim => {
  let mode: "insert" | "normal" = "insert"
  /** The first key of `dd`, `dw` and `cw`. */
  let pending = ""
  let register: Register = { text: "", isLine: false }
  /** The texts around each change of the normal mode: the editor undoes it key by key. */
  let changes: ReadonlyArray<{ readonly before: string; readonly after: string }> = []

  const { press, shown } = input
  const text = (): string => shown().lines.join("\n")
  const lineOf = (): string => shown().lines[shown().line] ?? ""
  const times = (key: string, isOver: () => boolean): void => {
    for (let left = mostPresses; left > 0 && !isOver(); left--) press(key)
  }
  /** Moves by the ends of lines, as the arrows up and down leave the draft for earlier ones. */
  const moveTo = ({ column, line }: Place): void => {
    while (shown().line < line) {
      press(keys.end)
      press(keys.right)
    }
    while (shown().line > line) {
      press(keys.start)
      press(keys.left)
    }
    times(keys.left, () => shown().column <= column)
    times(keys.right, () => shown().column >= column)
  }
  const cutTo = (end: number): void => {
    const { column } = shown()
    const line = lineOf()
    register = { text: line.slice(column, end), isLine: false }
    times(keys.delete, () => lineOf().length <= line.length - (end - column))
  }
  const cutLine = (): void => {
    const { line, lines } = shown()
    register = { text: lineOf(), isLine: true }
    press(keys.start)
    if (lineOf() !== "") press(keys.cut)
    if (lines.length === 1) return
    press(line === lines.length - 1 ? keys.back : keys.delete)
    press(keys.start)
  }
  const nextWord = (): Word | undefined => wordsOf(shown().lines).find((word) => isBehind(word, shown()))
  const wordHere = (): Word | undefined => {
    const { column, line } = shown()
    return wordsOf(shown().lines).find((word) => word.line === line && word.column <= column && word.end > column)
  }
  const pasteRegister = (): void => {
    if (register.text === "" && !register.isLine) return
    if (register.isLine) press(keys.end)
    else if (shown().column < lineOf().length) press(keys.right)
    input.insert(register.isLine ? `\n${register.text}` : register.text)
    press(register.isLine ? keys.start : keys.left)
  }
  const undo = (): void => {
    const last = changes.at(-1)
    if (last === undefined || last.after !== text()) return press(keys.undo)
    changes = changes.slice(0, -1)
    times(keys.undo, () => text() === last.before)
  }
  const insert = (): void => {
    mode = "insert"
  }
  const motions: { readonly [key: string]: () => void } = {
    h: () => shown().column > 0 && press(keys.left),
    l: () => shown().column < lineOf().length && press(keys.right),
    j: () => press(keys.down),
    k: () => press(keys.up),
    0: () => press(keys.start),
    $: () => press(keys.end),
    w: () => {
      const next = nextWord()
      if (next !== undefined) return moveTo(next)
      moveTo({ line: shown().lines.length - 1, column: Infinity })
    },
    b: () => {
      const before = wordsOf(shown().lines).findLast((word) => isBehind(shown(), word))
      moveTo(before ?? { line: 0, column: 0 })
    },
    e: () => {
      const next = wordsOf(shown().lines).find(({ end, line }) => isBehind({ line, column: end - 1 }, shown()))
      if (next !== undefined) moveTo({ line: next.line, column: next.end - 1 })
    }
  }
  const edits: { readonly [key: string]: () => void } = {
    x: () => cutTo(Math.min(lineOf().length, shown().column + 1)),
    dd: cutLine,
    dw: () => {
      const next = nextWord()
      cutTo(next?.line === shown().line ? next.column : lineOf().length)
    },
    cw: () => {
      const next = nextWord()
      cutTo(wordHere()?.end ?? (next?.line === shown().line ? next.column : lineOf().length))
      insert()
    },
    p: pasteRegister,
    o: () => {
      press(keys.end)
      input.insert("\n")
      insert()
    }
  }
  const inserts: { readonly [key: string]: () => void } = {
    i: () => {},
    a: () => shown().column < lineOf().length && press(keys.right),
    A: () => press(keys.end),
    I: () => moveTo({ line: shown().line, column: /\S/.exec(lineOf())?.index ?? 0 })
  }
  /** In normal mode the cursor is on a character. */
  const settle = (): void => {
    if (mode === "normal" && shown().column > 0 && shown().column >= lineOf().length) press(keys.left)
  }
  const run = (name: string): void => {
    const edit = edits[name]
    if (edit !== undefined) {
      const before = text()
      edit()
      changes = [...changes, { before, after: text() }].slice(-100)
    } else if (name === "u") undo()
    else if (inserts[name] !== undefined) {
      insert()
      inserts[name]()
    } else motions[name]?.()
    settle()
  }
  return {
    mode: () => mode,
    insert,
    key: (data) => {
      if (pressed(data) === "escape") {
        const wasPending = pending !== ""
        pending = ""
        if (mode === "normal") return wasPending
        mode = "normal"
        if (shown().column > 0) press(keys.left)
        return true
      }
      if (mode === "insert") return false
      const letter = letterOf(data) ?? (/^[ -~]$/.test(data) ? data : pressed(data) === "backspace" ? "h" : undefined)
      if (letter === undefined) return false
      const name = pending + letter
      pending = name === "d" || name === "c" ? name : ""
      if (pending === "") run(name)
      return true
    }
  }
}
