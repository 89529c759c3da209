/** The path rule of backends, as the reference has it, and the order in which paths are listed. */
import * as Result from "effect/Result"
import type { Reason } from "../../../../core/BackendError.ts"

const encoder = new TextEncoder()

/** The length of a text in UTF-8. */
export const byteLength = (text: string): number => encoder.encode(text).length

const maxNameBytes = 255
const maxPathBytes = 4096

const invalid = (problem: string): Result.Result<never, Reason> => Result.fail({ _tag: "InvalidPath", problem })

/** The one spelling of a path: absolute, without empty segments and dots; or why it can't be meant. */
export const normalize = (path: string): Result.Result<string, Reason> => {
  if (!path.isWellFormed()) return invalid("it holds half of a surrogate pair")
  if (path.includes("\0")) return invalid("it holds NUL")
  if (path.includes("\\")) return invalid("it holds a backslash; separate names by /")
  if (/^[A-Za-z]:(\/|$)/.test(path)) return invalid("it begins with a drive letter; begin with /")
  const names = path.split("/").filter((name) => name !== "" && name !== ".")
  if (names.includes("..") || names[0]?.startsWith("~") === true) return Result.fail({ _tag: "OutsideRoot" })
  if (names.some((name) => byteLength(name) > maxNameBytes)) return invalid(`a name is over ${maxNameBytes} bytes`)
  const normal = `/${names.join("/")}`
  return byteLength(normal) > maxPathBytes ? invalid(`it is over ${maxPathBytes} bytes`) : Result.succeed(normal)
}

/** The names on the way to a path: none for the root. */
export const segments = (path: string): ReadonlyArray<string> => path.split("/").filter((name) => name !== "")

/** Says whether a path is a folder or in it. */
export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`)

/** The folders that a path is in, from the outermost; without the root. */
export const ancestors = (path: string): ReadonlyArray<string> =>
  segments(path)
    .slice(0, -1)
    .map((_, index, names) => `/${names.slice(0, index + 1).join("/")}`)

const compareNames = (left: string, right: string): number => {
  const a = Array.from(left)
  const b = Array.from(right)
  for (const [index, char] of a.entries()) {
    const difference = (char.codePointAt(0) ?? 0) - (b[index]?.codePointAt(0) ?? -1)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** By the code points of the names, folder by folder: `/a/b` comes before `/a.txt`. */
export const comparePaths = (left: string, right: string): number => {
  const a = segments(left)
  const b = segments(right)
  for (const [index, name] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const difference = compareNames(name, other)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}
