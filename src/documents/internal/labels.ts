/** Labels of list items: digits, letters and Roman numerals, and counters by level. */

/** The deepest level, from 0. Word has nine levels, OpenDocument ten. */
const maxLevel = 9

const roman = "m 1000 cm 900 d 500 cd 400 c 100 xc 90 l 50 xl 40 x 10 ix 9 v 5 iv 4 i 1"
const numerals = [...roman.matchAll(/([a-z]+) (\d+)/g)].map(
  ([, letters = "", size]) => [letters, Number(size)] as const
)

const toRoman = (value: number): string => {
  let remaining = value
  let text = ""
  for (const [letters, size] of numerals) {
    text += letters.repeat(Math.floor(remaining / size))
    remaining %= size
  }
  return text
}

/** Letters after `z` repeat: `aa`, `bb`. */
const toLetters = (value: number): string => String.fromCharCode(97 + ((value - 1) % 26)).repeat(Math.ceil(value / 26))

/** Ways to write a number. */
export type Numerals = "decimal" | "zero" | "letters" | "LETTERS" | "roman" | "ROMAN"

/** Formats a number. Numbers above 260 are written in digits. */
export const formatNumber = (numerals: Numerals, value: number): string => {
  if (numerals === "zero") return String(value).padStart(2, "0")
  if (numerals === "decimal" || value < 1 || value > 260) return String(value)
  const text = numerals.toLowerCase() === "roman" ? toRoman(value) : toLetters(value)
  return numerals === "roman" || numerals === "letters" ? text : text.toUpperCase()
}

/** Indents an item by its level, as Markdown does. */
export const indentOf = (level: number): string => "    ".repeat(Math.min(maxLevel, Math.max(0, level)))

/** Parses a whole number below a billion, else returns the default. */
export const parseWhole = (text: string | undefined, otherwise: number): number => {
  const value = Number(text ?? otherwise)
  return Number.isSafeInteger(value) && value >= 0 && value < 1e9 ? value : otherwise
}

/** Parses the level of an item, from 0. */
export const parseLevel = (text: string | undefined): number => Math.min(maxLevel, parseWhole(text, 0))

/** The counters of a list, by level. */
export interface Counters {
  readonly values: Array<number | undefined>
}

export const makeCounters = (): Counters => ({ values: [] })

/** Counts an item. Deeper levels start anew unless `keeps` returns true for them. */
export const countItem = (
  { values }: Counters,
  level: number,
  start: number,
  keeps: (deeper: number) => boolean = () => false
): void => {
  const last = values[level]
  values[level] = last === undefined ? start : last + 1
  for (let deeper = level + 1; deeper < values.length; deeper++) if (!keeps(deeper)) values[deeper] = undefined
}
