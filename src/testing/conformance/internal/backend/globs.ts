/**
 * The reference for globs and ignore files, by `effect/Glob`.
 *
 * Globs of backends differ from `effect/Glob`: a pattern without `/` matches names at any depth; a leading `/` is the
 * searched folder; a trailing `/` matches all files of a folder; `a/**` excludes `a` itself; meaningless patterns fail.
 */
import * as Glob from "effect/Glob"
import * as Result from "effect/Result"
import { segments } from "./paths.ts"

const compileNames = (names: ReadonlyArray<string>): Glob.Glob =>
  Glob.make((names.at(-1) === "**" ? [...names, "*"] : names).join("/"), { dot: true })

/** Returns true if a `[` has no `]`. */
const isOpen = (pattern: string): boolean =>
  pattern.replaceAll(/\\.|\[[!^]?(?:\\.|\[:\w+:\]|[^\\])(?:\\.|\[:\w+:\]|[^\]\\])*\]/gs, "").includes("[")

const maxAlternatives = 1000

/** Expands the braces of a pattern. */
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

/** Compiles a glob of paths relative to the searched folder. Fails with the problem of the pattern. */
export const compileGlob = (pattern: string): Result.Result<(path: string) => boolean, string> => {
  if (pattern === "") return Result.fail("it is empty")
  if (/(?<!\\)\{(?:-?\d+\.\.-?\d+|[a-z]\.\.[a-z])(?:\.\.-?\d+)?\}/i.test(pattern)) return Result.fail("it has a range")
  if (pattern.length > 4096) return Result.fail("it is too long")
  const expanded = expand(pattern)
  if (Result.isFailure(expanded)) return Result.fail(expanded.failure)
  const anchored = pattern.includes("/")
  const globs: Array<Glob.Glob> = []
  for (const alternative of expanded.success) {
    const one = alternative.replaceAll(/\/+/g, "/")
    const names = (one.endsWith("/") ? `${one}**` : one).replace(/^\//, "").split("/")
    if (names.some(isOpen)) return Result.fail("a character class is not closed")
    if (names.includes("..")) return Result.fail("it leads out of where it looks")
    globs.push(compileNames(anchored ? names.filter((name) => name !== ".") : ["**", ...names]))
  }
  return Result.succeed((path) => globs.some(Glob.match(segments(path).join("/"))))
}

interface Rule {
  readonly glob: Glob.Glob
  readonly negated: boolean
  readonly directories: boolean
}

const compileRule = (line: string): Rule | undefined => {
  const text = line.replace(/(?<!\\) +$/, "")
  if (text === "" || text.startsWith("#")) return undefined
  const negated = text.startsWith("!")
  const directories = text.endsWith("/")
  // Braces mean nothing in ignore files.
  const names = text
    .slice(negated ? 1 : 0, directories ? -1 : undefined)
    .replaceAll(/\\.|[{}]/gs, (match) => (match.length === 1 ? `\\${match}` : match))
  const parts = names.includes("/") ? names.replace(/^\//, "").split("/") : ["**", names]
  // Such names match nothing.
  if (parts.some((part) => part === "" || part === "." || isOpen(part))) return undefined
  return { glob: compileNames(parts), negated, directories }
}

/** Reads ignore files, and returns a function that checks paths. */
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
    const decision = directory ? decided.get(key) : undefined
    if (decision !== undefined) return decision
    let ignored = isIgnored(names.slice(0, -1), true)
    if (!ignored && directory && names.at(-1) === ".git") ignored = true
    // A file in an ignored folder can't be re-included.
    else if (!ignored)
      for (let depth = 0; depth < names.length; depth++)
        for (const rule of rules.get(`/${names.slice(0, depth).join("/")}`) ?? [])
          if ((directory || !rule.directories) && Glob.match(rule.glob, names.slice(depth).join("/")))
            ignored = !rule.negated
    if (directory) decided.set(key, ignored)
    return ignored
  }
  return (path) => isIgnored(segments(path), false)
}
