/**
 * Patterns of whole paths without braces, matched by `effect/Glob`.
 *
 * Measured against hostile patterns (thousands of `*`, `**`, `[`, nested braces), `effect/Glob` compiles in linear time
 * and matches in at most the product of both lengths: it keeps a set of states for names, and takes back only the last
 * `*` within one. What most patterns need is compared as text first, which is ten times as fast.
 */
import * as Glob from "effect/Glob"

/** Tests a relative path, which is normal and not empty. */
export type Wildcard = (path: string) => boolean

/** Compiles segments in the syntax of `effect/Glob`. A `**` at the end stands for at least one name. */
export const compile = (segments: ReadonlyArray<string>): Wildcard => {
  const some = segments.filter((segment, index) => segment !== "**" || segments[index - 1] !== "**")
  const all = some.at(-1) === "**" ? [...some, "*"] : some
  const last = all.at(-1) ?? ""
  const isOfName = all.length === 2 && all[0] === "**"
  const pattern = isOfName ? last : all.join("/")
  const subjectOf = (path: string) => (isOfName ? path.slice(path.lastIndexOf("/") + 1) : path)
  if (!/[*?[\\]/.test(pattern)) return (path) => subjectOf(path) === pattern
  const head = /^[^*?[\\]*/.exec(pattern)?.[0] ?? ""
  const tail = /[[\\]/.test(last) ? "" : last.slice(Math.max(last.lastIndexOf("*"), last.lastIndexOf("?")) + 1)
  if (isOfName && pattern === `*${tail}`) return (path) => path.endsWith(tail)
  // Made when it is needed: an ignore file has thousands of lines.
  let glob: Glob.Glob | undefined
  return (path) => {
    const subject = subjectOf(path)
    if (!subject.startsWith(head) || !subject.endsWith(tail)) return false
    // From a root on: a first name `C:` would be a drive.
    glob ??= Glob.make(`/${pattern}`, { dot: true })
    return Glob.match(glob, `/${subject}`)
  }
}
