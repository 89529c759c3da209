/** Patterns of paths in rules, as in `.gitignore`: `src/**`, `*.md`, `/build`, `~/notes`, `//etc`. */
import { isAbsolute, join, normalize } from "node:path"

/** Tells whether a name fits a pattern with `*` and `?`. The time grows with both lengths, and no faster. */
const matchesName = (pattern: string, name: string): boolean => {
  let at = 0
  let star = -1
  let from = 0
  let index = 0
  while (index < name.length) {
    if (at < pattern.length && (pattern[at] === "?" || pattern[at] === name[index]) && pattern[at] !== "*") {
      at++
      index++
    } else if (pattern[at] === "*") {
      star = at++
      from = index
    } else if (star !== -1) {
      at = star + 1
      index = ++from
    } else return false
  }
  while (pattern[at] === "*") at++
  return at === pattern.length
}

/** Tells whether names fit patterns of names. `**` stands for any number of names, and a pattern covers all below it. */
const matchesNames = (patterns: ReadonlyArray<string>, names: ReadonlyArray<string>): boolean => {
  // The places in the patterns that the names so far can have come to.
  let reached = new Set([0])
  const open = (places: Set<number>): Set<number> => {
    for (const place of places) if (patterns[place] === "**") places.add(place + 1)
    return places
  }
  open(reached)
  for (const name of names) {
    if (reached.has(patterns.length)) return true
    const next = new Set<number>()
    for (const place of reached) {
      const pattern = patterns[place]
      if (pattern === "**") next.add(place)
      else if (pattern !== undefined && matchesName(pattern, name)) next.add(place + 1)
    }
    reached = open(next)
  }
  return reached.has(patterns.length)
}

/** A pattern as one of whole paths of the machine. */
const wholePattern = (pattern: string, folder: string, home: string): string => {
  const bare = pattern.replace(/^\.\//, "/").replace(/\/$/, "")
  if (bare.startsWith("//")) return bare.slice(1)
  if (bare.startsWith("~/")) return join(home, bare.slice(2))
  return bare.startsWith("/") || bare.includes("/") ? join(folder, bare) : join(folder, "**", bare)
}

/** A pattern as a glob of whole paths, which has more signs with a meaning. */
export const globOf = (pattern: string, folder: string, home: string): string => {
  const escape = (path: string): string => path.replaceAll(/[[\]{},\\!]/g, "\\$&")
  // The folders themselves may have signs of patterns in their names.
  const literal = (path: string): string => escape(path).replaceAll(/[*?]/g, "\\$&")
  const whole = wholePattern(pattern, "/folder", "/home")
  if (pattern.startsWith("//")) return escape(whole)
  const rest = (base: string): string => escape(whole.slice(base.length))
  return whole.startsWith("/home/") && pattern.startsWith("~/")
    ? literal(home) + rest("/home")
    : literal(folder) + rest("/folder")
}

/**
 * Tells whether a pattern covers a path of the machine: `//x` from its root, `~/x` from the home, `/x` and `a/x` from the
 * folder, and a pattern without a slash at any depth below the folder.
 */
export const matchesPath = (
  pattern: string,
  path: string,
  place: { readonly folder: string; readonly home: string; readonly folds: boolean }
): boolean => {
  const { folder, folds, home } = place
  const whole = wholePattern(pattern, folder, home)
  const splitPath = (text: string): ReadonlyArray<string> => {
    const folded = folds ? text.normalize("NFC").toLowerCase() : text
    return folded.split("/").filter((name) => name !== "")
  }
  return isAbsolute(path) && matchesNames(splitPath(whole), splitPath(normalize(path)))
}
