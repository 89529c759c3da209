/**
 * Wildcards of names and paths, for globs and ignore files, matched without backtracking over more than one `*`.
 *
 * In a name, `*` stands for any characters, `?` for one, `[a-z]`, `[!a]`, `[^a]` and `[[:alpha:]]` for one of a class,
 * and `\` takes the meaning of what follows. A whole segment `**` stands for any number of names. A character is a code
 * point. Matching takes at most the product of both lengths in steps.
 */

import { type Class, readClass, skipClass } from "./wildcardClass.ts"

/** A code point, or one of a class, or any. */
type Single = { readonly _tag: "Char"; readonly code: number } | { readonly _tag: "Any" } | Class

type Token = Single | { readonly _tag: "Star" }

/** A name with wildcards. Most are plain, or a star and a plain end: those are compared as texts. */
type Name =
  | { readonly _tag: "Plain"; readonly text: string }
  | { readonly _tag: "Suffix"; readonly text: string }
  | { readonly _tag: "Tokens"; readonly tokens: ReadonlyArray<Token> }

type Segment = Name | { readonly _tag: "Globstar" }

/** A path with wildcards: its segments, from the root of the match on. */
export type Wildcard = ReadonlyArray<Segment>

const codes = (text: string): ReadonlyArray<number> => Array.from(text, (char) => char.codePointAt(0) ?? 0)

const code = (char: string): number => char.codePointAt(0) ?? 0
const [star, question, open, escape] = [code("*"), code("?"), code("["), code("\\")]

/** What is wrong with a pattern. */
export type Malformed = "class" | "escape"

const readName = (pattern: string): Name | Malformed => {
  const from = codes(pattern)
  const tokens: Array<Token> = []
  for (let i = 0; i < from.length; i++) {
    const char = from[i] ?? 0
    if (char === star) {
      if (tokens.at(-1)?._tag !== "Star") tokens.push({ _tag: "Star" })
    } else if (char === question) tokens.push({ _tag: "Any" })
    else if (char === open) {
      const read = readClass(from, i + 1)
      if (read === undefined) return "class"
      tokens.push(read.single)
      i = read.next - 1
    } else if (char === escape) {
      i++
      const escaped = from[i]
      if (escaped === undefined) return "escape"
      tokens.push({ _tag: "Char", code: escaped })
    } else tokens.push({ _tag: "Char", code: char })
  }
  const plain = tokens.every((token, index) => token._tag === "Char" || (index === 0 && token._tag === "Star"))
  if (!plain) return { _tag: "Tokens", tokens }
  const text = tokens.map((token) => (token._tag === "Char" ? String.fromCodePoint(token.code) : "")).join("")
  return { _tag: tokens[0]?._tag === "Star" ? "Suffix" : "Plain", text }
}

/**
 * Splits a pattern at each `/`, escaped or not; a `/` in a class is a member of it, which no name has. As with git, a
 * `**` before an escaped one stands for at least one name.
 */
export const split = (pattern: string): ReadonlyArray<string> => {
  const segments: Array<string> = []
  let from = 0
  let i = 0
  while (i < pattern.length) {
    const char = pattern[i]
    const isEscaped = char === "\\" && pattern[i + 1] === "/"
    if (char === "/" || isEscaped) {
      const segment = pattern.slice(from, i)
      segments.push(...(isEscaped && segment === "**" ? ["*", segment] : [segment]))
      i += isEscaped ? 2 : 1
      from = i
    } else if (char === "[") i = skipClass(pattern, i)
    else i += char === "\\" ? 2 : 1
  }
  return [...segments, pattern.slice(from)]
}

/** Makes the segments of a pattern ready to match. */
export const compile = (segments: ReadonlyArray<string>): Wildcard | Malformed => {
  const compiled: Array<Segment> = []
  for (const segment of segments) {
    if (segment === "**") {
      if (compiled.at(-1)?._tag !== "Globstar") compiled.push({ _tag: "Globstar" })
      continue
    }
    const name = readName(segment)
    if (typeof name === "string") return name
    compiled.push(name)
  }
  return compiled
}

const matchesSingle = (single: Single, char: number): boolean => {
  switch (single._tag) {
    case "Char":
      return single.code === char
    case "Any":
      return true
    case "Class":
      return single.ranges.some(([low, high]) => low <= char && char <= high) !== single.negated
  }
}

const matchesTokens = (tokens: ReadonlyArray<Token>, name: string): boolean => {
  const chars = codes(name)
  let token = 0
  let char = 0
  /** The last star, and where what it stands for ends so far. Only the last one is ever taken back. */
  let starToken = -1
  let starChar = 0
  while (char < chars.length) {
    const at = tokens[token]
    if (at !== undefined && at._tag === "Star") {
      starToken = token++
      starChar = char
    } else if (at !== undefined && matchesSingle(at, chars[char] ?? 0)) {
      token++
      char++
    } else if (starToken !== -1) {
      token = starToken + 1
      char = ++starChar
    } else return false
  }
  return tokens.slice(token).every(({ _tag }) => _tag === "Star")
}

const matchesName = (name: Name, text: string): boolean => {
  switch (name._tag) {
    case "Plain":
      return name.text === text
    case "Suffix":
      return text.endsWith(name.text)
    case "Tokens":
      return matchesTokens(name.tokens, text)
  }
}

/** Whether the names of a path match. A `**` at the end stands for at least one name, elsewhere for any number. */
export const matches = (wildcard: Wildcard, names: ReadonlyArray<string>): boolean => {
  let segment = 0
  let name = 0
  let starSegment = -1
  let starName = 0
  while (name < names.length) {
    const at = wildcard[segment]
    if (at !== undefined && at._tag === "Globstar") {
      starSegment = segment++
      starName = name
    } else if (at !== undefined && matchesName(at, names[name] ?? "")) {
      segment++
      name++
    } else if (starSegment !== -1) {
      segment = starSegment + 1
      name = ++starName
    } else return false
  }
  return segment === wildcard.length
}

/** Whether only the last name of a path counts: it matches by itself if the path does, at any depth. */
export const isOfName = ([first, second, third]: Wildcard): boolean =>
  first?._tag === "Globstar" && second !== undefined && second._tag !== "Globstar" && third === undefined

/** The names that a path must begin with to match: as many segments as are plain, but for the last one. */
export const prefixOf = (wildcard: Wildcard): ReadonlyArray<string> => {
  const names: Array<string> = []
  for (const segment of wildcard.slice(0, -1)) {
    if (segment._tag !== "Plain") break
    names.push(segment.text)
  }
  return names
}
