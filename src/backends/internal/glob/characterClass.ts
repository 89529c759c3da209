/**
 * Classes of characters such as `[a-z]`, `[!a]` and `[[:alpha:]]`, read as git reads them and written for
 * `effect/Glob`.
 */

/** The POSIX classes that mean the same to both. */
const posixClasses = /^(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|upper|xdigit)$/

const code = (char: string): number => char.codePointAt(0) ?? 0

/** Writes the members from one character to another, without the `/` that no name has. */
const range = (low: string, high: string): string => {
  const [from, to] = [low === "/" ? "0" : low, high === "/" ? "." : high]
  return code(from) <= code(to) ? `\\${from}-\\${to}` : ""
}

const space = range("\t", "\n") + range("\r", "\r") + range(" ", " ")

/** A class as `effect/Glob` understands it, and the index behind it. */
export interface CharacterClass {
  readonly text: string
  readonly next: number
}

/** Reads a POSIX class such as `[:alpha:]`; its text is empty if it is unknown. */
const readPosix = (pattern: string, at: number): CharacterClass | undefined => {
  const match = pattern.startsWith("[:", at) ? /^\[:([^\]]*):\]/.exec(pattern.slice(at)) : null
  if (match === null) return undefined
  const [all, name = ""] = match
  const text = name === "space" ? space : posixClasses.test(name) ? all : ""
  return { text, next: at + all.length }
}

/**
 * Reads the class that begins with the `[` at `open`. Gives nothing without an end, or for an unknown POSIX class.
 */
export const readClass = (pattern: string, open: number): CharacterClass | undefined => {
  const isNegated = pattern[open + 1] === "!" || pattern[open + 1] === "^"
  const first = open + (isNegated ? 2 : 1)
  let at = first
  let members = ""
  /** The member before, if it can begin a range. */
  let low: string | undefined
  // A `]` that comes first is a member.
  while (at === first || pattern[at] !== "]") {
    const posix = readPosix(pattern, at)
    if (posix !== undefined) {
      if (posix.text === "") return undefined
      members += posix.text
      low = undefined
      at = posix.next
      continue
    }
    const from = pattern[at] === "-" && pattern[at + 1] !== "]" ? low : undefined
    if (from !== undefined) at++
    if (pattern[at] === "\\") at++
    const point = pattern.codePointAt(at)
    if (point === undefined) return undefined
    const char = String.fromCodePoint(point)
    members += range(from ?? char, char)
    low = from === undefined ? char : undefined
    at += char.length
  }
  const none = isNegated ? "?" : "[\0-\0]"
  return { text: members === "" ? none : `[${isNegated ? "!" : ""}${members}]`, next: at + 1 }
}
