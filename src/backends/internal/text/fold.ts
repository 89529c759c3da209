/**
 * Normal forms of a text without the differences that people and models confuse: line endings, spaces, quotes, case.
 *
 * Each aspect can be folded or left. Lines keep their numbers.
 */

/** The aspects in which texts may differ and still look alike. */
export const aspects = ["endings", "trailing", "indentation", "spaces", "typography", "case", "edges"] as const
export type Aspect = (typeof aspects)[number]

/** The name of an aspect in a hint. */
export const aspectNames: { readonly [aspect in Aspect]: string } = {
  endings: "line endings (\\r\\n or \\n)",
  trailing: "spaces at the ends of lines",
  indentation: "indentation",
  spaces: "spaces within lines",
  typography: "quotes, dashes or special spaces (such as “ ” ’ –)",
  case: "upper and lower case",
  edges: "line breaks at its beginning or end"
}

const lf = 10
const cr = 13
const tab = 9
const space = 32

/** The characters that typographic ones are typed as. */
export const typed = (unit: number): number => {
  if (unit < 0xa0) return unit
  if (unit === 0xa0 || (unit >= 0x2000 && unit <= 0x200a) || unit === 0x202f || unit === 0x3000) return space
  if (unit >= 0x2018 && unit <= 0x201b) return 0x27
  if (unit >= 0x201c && unit <= 0x201f) return 0x22
  if ((unit >= 0x2010 && unit <= 0x2015) || unit === 0x2212) return 0x2d
  return unit
}

/** The text of UTF-16 units. They are decoded in parts, as a function takes only so many arguments. */
const textOf = (units: Uint16Array): string => {
  const parts: Array<string> = []
  for (let i = 0; i < units.length; i += 8_192) parts.push(String.fromCharCode(...units.subarray(i, i + 8_192)))
  return parts.join("")
}

const trimBreaks = (units: Uint16Array): Uint16Array => {
  let from = 0
  let to = units.length
  while (from < to && units[from] === lf) from++
  while (to > from && units[to - 1] === lf) to--
  return units.subarray(from, to)
}

/** Folds these aspects of a text; `edges` are the line breaks at both ends. One pass, and one for the case. */
export const fold = (text: string, folded: ReadonlySet<Aspect>): string => {
  const endings = folded.has("endings")
  const trailing = folded.has("trailing")
  const indentation = folded.has("indentation")
  const spaces = folded.has("spaces")
  const typography = folded.has("typography")
  const source = typography ? text.replaceAll("…", "...") : text
  const units = new Uint16Array(source.length)
  let length = 0
  /** The index of the first pending space; the next character decides on its kind. */
  let pending = 0
  let atLineStart = true
  const at = (index: number) => (typography ? typed(source.charCodeAt(index)) : source.charCodeAt(index))
  const flush = (end: number) => {
    for (let i = pending; i < end; i++) units[length++] = at(i)
  }
  for (let i = 0; i < source.length; i++) {
    const unit = at(i)
    if (unit === space || unit === tab) continue
    if (unit === lf || (endings && unit === cr)) {
      if (!trailing) flush(i)
      units[length++] = lf
      if (unit === cr && source.charCodeAt(i + 1) === lf) i++
      atLineStart = true
    } else {
      if (i > pending) {
        if (atLineStart ? !indentation : !spaces) flush(i)
        else if (!atLineStart) units[length++] = space
      }
      units[length++] = unit
      atLineStart = false
    }
    pending = i + 1
  }
  if (!trailing) flush(source.length)
  const lines = units.subarray(0, length)
  const result = textOf(folded.has("edges") ? trimBreaks(lines) : lines)
  return folded.has("case") ? result.toLowerCase() : result
}
