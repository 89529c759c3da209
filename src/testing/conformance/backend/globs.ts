/**
 * The glob dialect of backends and the rules of ignore files, as the reference has them: no regular expressions, so
 * that a pattern takes at most as many steps as it has parts times the parts of the path.
 */
import * as Result from "effect/Result"
import { segments } from "./paths.ts"

type Test = (item: string) => boolean

/** `many` stands for any run of items, a test for one of them. */
type Part = "many" | Test

const fits = (parts: ReadonlyArray<Part>, items: ReadonlyArray<string>): boolean => {
  let part = 0
  let item = 0
  let many = -1
  let taken = 0
  while (item < items.length) {
    const current = parts[part]
    if (current === "many") {
      many = part++
      taken = item
    } else if (current?.(items[item] ?? "") === true) {
      part++
      item++
    } else if (many >= 0) {
      part = many + 1
      item = ++taken
    } else return false
  }
  while (parts[part] === "many") part++
  return part === parts.length
}

/** The class that begins at `[`, and where it ends. */
const readClass = (chars: ReadonlyArray<string>, from: number): readonly [Test, number] | undefined => {
  let at = from + 1
  const negated = chars[at] === "!" || chars[at] === "^"
  if (negated) at++
  const ranges: Array<readonly [number, number]> = []
  for (let first = true; ; first = false) {
    if (chars[at] === undefined) return undefined
    if (chars[at] === "]" && !first) break
    if (chars[at] === "\\") at++
    const low = chars[at]?.codePointAt(0) ?? 0
    const isRange = chars[at + 1] === "-" && chars[at + 2] !== undefined && chars[at + 2] !== "]"
    const high = isRange ? (chars[at + 2]?.codePointAt(0) ?? 0) : low
    if (high < low) return undefined
    ranges.push([low, high])
    at += isRange ? 3 : 1
  }
  return [
    (char) => {
      const point = char.codePointAt(0) ?? 0
      return ranges.some(([low, high]) => low <= point && point <= high) !== negated
    },
    at
  ]
}

const compileName = (pattern: string): ReadonlyArray<Part> | undefined => {
  const chars = Array.from(pattern)
  const parts: Array<Part> = []
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ""
    if (char === "*") {
      if (parts.at(-1) !== "many") parts.push("many")
    } else if (char === "?") parts.push(() => true)
    else if (char === "[") {
      const found = readClass(chars, at)
      if (found === undefined) return undefined
      parts.push(found[0])
      at = found[1]
    } else {
      const literal = char === "\\" ? (chars[++at] ?? "\\") : char
      parts.push((other) => other === literal)
    }
  }
  return parts
}

const compileNames = (names: ReadonlyArray<string>): ReadonlyArray<Part> | undefined => {
  const parts: Array<Part> = []
  for (const name of names) {
    if (name === "**") {
      if (parts.at(-1) !== "many") parts.push("many")
      continue
    }
    const inner = compileName(name)
    if (inner === undefined) return undefined
    parts.push((item) => fits(inner, Array.from(item)))
  }
  // What `a/**` matches is in `a`, and not `a`.
  return parts.at(-1) === "many" ? [...parts, () => true] : parts
}

const maxAlternatives = 1000

/** The patterns that a pattern with braces stands for. */
const expand = (pattern: string): Result.Result<ReadonlyArray<string>, string> => {
  const stack: Array<{ readonly done: Array<string>; current: ReadonlyArray<string> }> = [{ done: [], current: [""] }]
  const tooMany = Result.fail(`its braces stand for more than ${maxAlternatives} patterns`)
  const chars = Array.from(pattern)
  for (let at = 0; at < chars.length; at++) {
    const level = stack.at(-1)
    if (level === undefined) break
    const char = chars[at] ?? ""
    const append = (text: string) => {
      level.current = level.current.map((before) => before + text)
    }
    if (char === "\\") append(char + (chars[++at] ?? ""))
    else if (char === "{") stack.push({ done: [], current: [""] })
    else if (char === "," && stack.length > 1) {
      level.done.push(...level.current)
      level.current = [""]
    } else if (char === "}" && stack.length > 1) {
      stack.pop()
      const all = [...level.done, ...level.current]
      const outer = stack.at(-1)
      if (outer === undefined) break
      if (all.length * outer.current.length > maxAlternatives) return tooMany
      outer.current = outer.current.flatMap((before) => all.map((after) => before + after))
    } else append(char)
  }
  if (stack.length !== 1) return Result.fail("a brace is not closed")
  return Result.succeed(stack[0]?.current ?? [])
}

/** What a glob matches, of paths relative to where it looks; or what is wrong with it. */
export const compileGlob = (pattern: string): Result.Result<(path: string) => boolean, string> => {
  if (pattern === "") return Result.fail("it is empty")
  if (/(?<!\\)\{(?:-?\d+\.\.-?\d+|[a-z]\.\.[a-z])(?:\.\.-?\d+)?\}/i.test(pattern)) return Result.fail("it has a range")
  if (pattern.length > 4096) return Result.fail("it is too long")
  const expanded = expand(pattern)
  if (Result.isFailure(expanded)) return Result.fail(expanded.failure)
  const anchored = pattern.includes("/")
  const all: Array<ReadonlyArray<Part>> = []
  for (const alternative of expanded.success) {
    const one = alternative.replaceAll(/\/+/g, "/")
    // `src/` is all that is in `src`.
    const names = (one.endsWith("/") ? `${one}**` : one).replace(/^\//, "").split("/")
    if (names.includes("..")) return Result.fail("it leads out of where it looks")
    const parts = compileNames(anchored ? names.filter((name) => name !== ".") : ["**", ...names])
    if (parts === undefined) return Result.fail("a character class is not closed, or its range is empty")
    all.push(parts)
  }
  return Result.succeed((path) => {
    const names = segments(path)
    return all.some((parts) => fits(parts, names))
  })
}

interface Rule {
  readonly parts: ReadonlyArray<Part>
  readonly negated: boolean
  readonly directories: boolean
}

const compileRule = (line: string): Rule | undefined => {
  const text = line.replace(/(?<!\\) +$/, "")
  if (text === "" || text.startsWith("#")) return undefined
  const negated = text.startsWith("!")
  const directories = text.endsWith("/")
  const names = text.slice(negated ? 1 : 0, directories ? -1 : undefined)
  const anchored = names.includes("/")
  const parts = compileNames(anchored ? names.replace(/^\//, "").split("/") : ["**", names])
  return parts === undefined ? undefined : { parts, negated, directories }
}

/** The rules of the ignore files in these folders: whether a file is left out. */
export const compileIgnore = (files: ReadonlyMap<string, string>): ((path: string) => boolean) => {
  const rules = new Map(
    Array.from(files, ([folder, text]) => [
      folder,
      text.split(/\r?\n/).flatMap((line) => {
        const rule = compileRule(line)
        return rule === undefined ? [] : [rule]
      })
    ])
  )
  const decided = new Map<string, boolean>()
  const isIgnored = (names: ReadonlyArray<string>, directory: boolean): boolean => {
    if (names.length === 0) return false
    const key = names.join("/")
    const known = directory ? decided.get(key) : undefined
    if (known !== undefined) return known
    let ignored = isIgnored(names.slice(0, -1), true)
    if (!ignored && directory && names.at(-1) === ".git") ignored = true
    // What is in an ignored folder can't be named back in.
    else if (!ignored)
      for (let depth = 0; depth < names.length; depth++)
        for (const rule of rules.get(`/${names.slice(0, depth).join("/")}`) ?? [])
          if ((directory || !rule.directories) && fits(rule.parts, names.slice(depth))) ignored = !rule.negated
    if (directory) decided.set(key, ignored)
    return ignored
  }
  return (path) => isIgnored(segments(path), false)
}
