/** Labels of list items: numbers as letters, Roman numerals and digits, and the counters of a list of several levels. */

/** A list has nine levels in Word, and ten in OpenDocument. */
const maxLevel = 9

const roman: ReadonlyArray<readonly [number, string]> = [
  [1000, "m"],
  [900, "cm"],
  [500, "d"],
  [400, "cd"],
  [100, "c"],
  [90, "xc"],
  [50, "l"],
  [40, "xl"],
  [10, "x"],
  [9, "ix"],
  [5, "v"],
  [4, "iv"],
  [1, "i"]
]

const romanOf = (value: number): string => {
  let left = value
  let text = ""
  for (const [size, letters] of roman) {
    while (left >= size) {
      text += letters
      left -= size
    }
  }
  return text
}

/** Letters behind `z` are doubled: `aa`, `bb`. */
const lettersOf = (value: number): string => String.fromCharCode(97 + ((value - 1) % 26)).repeat(Math.ceil(value / 26))

/** The ways to write a number. */
export type Numerals = "decimal" | "zero" | "letters" | "LETTERS" | "roman" | "ROMAN"

/** Writes a number. What letters or Roman numerals would write at length is written in digits. */
export const numeralOf = (numerals: Numerals, value: number): string => {
  const isShort = value >= 1 && value <= 260
  switch (numerals) {
    case "decimal":
      return String(value)
    case "zero":
      return String(value).padStart(2, "0")
    case "letters":
      return isShort ? lettersOf(value) : String(value)
    case "LETTERS":
      return isShort ? lettersOf(value).toUpperCase() : String(value)
    case "roman":
      return isShort ? romanOf(value) : String(value)
    case "ROMAN":
      return isShort ? romanOf(value).toUpperCase() : String(value)
  }
}

/** The spaces before an item of a level: as many as Markdown wants under a number of two digits. */
export const indentOf = (level: number): string => "    ".repeat(Math.min(maxLevel, Math.max(0, level)))

/** Parses a number of a document: a whole one that is not too large, or the default. */
export const wholeOf = (text: string | undefined, otherwise: number): number => {
  const value = Number(text ?? otherwise)
  return Number.isSafeInteger(value) && value >= 0 && value < 1e9 ? value : otherwise
}

/** Parses the level of an item, counted from 0. */
export const levelOf = (text: string | undefined): number => Math.min(maxLevel, wholeOf(text, 0))

/** The counters of a list, by level. */
export interface Counters {
  readonly values: Array<number | undefined>
}

export const makeCounters = (): Counters => ({ values: [] })

/** Counts an item of a level. `keeps` says which deeper levels go on counting. */
export const count = (
  { values }: Counters,
  level: number,
  start: number,
  keeps: (deeper: number) => boolean = () => false
): void => {
  const last = values[level]
  values[level] = last === undefined ? start : last + 1
  for (let deeper = level + 1; deeper < values.length; deeper++) if (!keeps(deeper)) values[deeper] = undefined
}
