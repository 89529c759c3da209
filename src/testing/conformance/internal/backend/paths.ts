/** The reference for paths: normalisation and order. */
import * as Result from "effect/Result"
import type { Reason } from "../../../../core/BackendError.ts"

const encoder = new TextEncoder()

/** Counts the bytes of a text in UTF-8. */
export const byteLength = (text: string): number => encoder.encode(text).length

const maxNameBytes = 255
const maxPathBytes = 4096

const invalid = (problem: string): Result.Result<never, Reason> => Result.fail({ _tag: "InvalidPath", problem })

/** Normalises a path: absolute, without empty segments and dots. Fails for an invalid path. */
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

/** Splits a path into names. The root has no names. */
export const segments = (path: string): ReadonlyArray<string> => path.split("/").filter((name) => name !== "")

/** Returns true if a path is a folder or inside of it. */
export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`)

/** Lists the folders of a path, outermost first, without the root. */
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

/** Compares paths by code points, folder by folder: `/a/b` comes before `/a.txt`. */
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
