/**
 * The path rules of all backends: valid paths, their normal form and their order.
 *
 * Normal paths are absolute, without empty or `.` segments and without a trailing `/`; the root is `/`. All
 * functions but {@link normalize} and {@link resolve} take normal paths.
 */
import * as Result from "effect/Result"
import type { Paths } from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { cut } from "../../../support/text/text.ts"
import { utf8Length } from "../text/utf8.ts"

/** The longest name, in bytes of UTF-8. */
const maxNameBytes = 255

/** The longest path, in bytes of UTF-8. */
export const maxPathBytes = 4_096

const problemOf = (path: string): string | undefined => {
  if (path.includes("\0")) return "it has a NUL character"
  if (path.includes("\\")) return "it has a backslash; write paths with '/'"
  if (!path.isWellFormed()) return "it is not valid Unicode"
  if (/^[A-Za-z]:(?:\/|$)/.test(path)) return "it has a drive letter; write paths from the root '/'"
  return undefined
}

/**
 * The normal form of a path as it was given, for the operation that is named in the error. Fails with `OutsideRoot` for
 * a `..` segment or a first segment that begins with `~`, else with `InvalidPath`.
 */
export const normalize = (operation: string, path: string): Result.Result<string, BackendError.BackendError> => {
  const refuse = (reason: BackendError.Reason) =>
    Result.fail(BackendError.make(operation, cut(path, maxPathBytes), reason))
  const invalid = (problem: string) => refuse({ _tag: "InvalidPath", problem })
  // Checked first: a hostile path may be megabytes long. A text has never fewer bytes than units. What normalising
  // takes away may be long too, but not without end.
  if (path.length > 2 * maxPathBytes) return invalid(`it is longer than ${maxPathBytes} bytes`)
  const problem = problemOf(path)
  if (problem !== undefined) return invalid(problem)
  const segments = path.split("/").filter((segment) => segment !== "" && segment !== ".")
  if (segments.includes("..") || segments[0]?.startsWith("~") === true) return refuse({ _tag: "OutsideRoot" })
  if (segments.some((segment) => utf8Length(segment) > maxNameBytes)) {
    return invalid(`a name in it is longer than ${maxNameBytes} bytes`)
  }
  const normal = `/${segments.join("/")}`
  return utf8Length(normal) > maxPathBytes ? invalid(`it is longer than ${maxPathBytes} bytes`) : Result.succeed(normal)
}

const fileAddress = "file:///"

/** Decodes the path of an address, as stack traces print it. A malformed one stays a text. */
const fromAddress = (address: string): string =>
  Result.getOrElse(
    Result.try(() => decodeURIComponent(address.slice(fileAddress.length - 1))),
    () => address
  )

/** A path from the root: relative ones count from the working folder, `~` is the home, `..` is folded by names. */
const absolute = ({ cwd, home }: Paths, inputPath: string): string => {
  const path = inputPath.startsWith(fileAddress) ? fromAddress(inputPath) : inputPath
  const whole = path.startsWith("/")
    ? path
    : path === "~" || path.startsWith("~/")
      ? `${home}${path.slice(1)}`
      : `${cwd}/${path}`
  const names: Array<string> = []
  for (const name of whole.split("/")) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}

/** {@link normalize}, in a backend that says how paths are written. The error names the path as it was given. */
export const resolve = (
  operation: string,
  inputPath: string,
  paths: Paths | undefined
): Result.Result<string, BackendError.BackendError> =>
  // As a shell reads it, `~name` is the home of somebody else.
  paths === undefined ||
  inputPath.length > 2 * maxPathBytes ||
  problemOf(inputPath) !== undefined ||
  /^~[^/]/.test(inputPath)
    ? normalize(operation, inputPath)
    : Result.mapError(normalize(operation, absolute(paths, inputPath)), (error) =>
        BackendError.at(error, operation, cut(inputPath, maxPathBytes))
      )

/** The folder that relative paths count from. */
export const workingFolder = (paths: Paths | undefined): string => paths?.cwd ?? "/"

/** Splits a path into names. The root has none. */
export const segments = (path: string): ReadonlyArray<string> => (path === "/" ? [] : path.slice(1).split("/"))

/** A path under a folder. `relative` is a name, or several with `/` between them, or empty. */
export const join = (folder: string, relative: string): string =>
  relative === "" ? folder : folder === "/" ? `/${relative}` : `${folder}/${relative}`

/** The folder that a path is in; the root is in itself. */
export const parent = (path: string): string => {
  const slash = path.lastIndexOf("/")
  return slash <= 0 ? "/" : path.slice(0, slash)
}

/** The last name of a path; empty for the root. */
export const basename = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** Tells whether a path is a folder itself, or anywhere in it. `/ab` is not within `/a`. */
export const isWithin = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || (path.startsWith(folder) && path[folder.length] === "/")

/** Gives a path relative to a folder, without a leading `/`; empty for the folder itself. */
export const relative = (path: string, folder: string): string =>
  folder === "/" ? path.slice(1) : path.slice(folder.length + 1)

const slash = 0x2f

/** The end of a path comes first, then `/`, then code points; surrogates are moved above the rest of their plane. */
const rank = (path: string, index: number): number => {
  if (index >= path.length) return -2
  const unit = path.charCodeAt(index)
  if (unit === slash) return -1
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

/** Code units are in the order of code points, except from surrogates on. */
const isHigh = /[\ud800-\uffff]/

/** The order of names, as {@link compare} has it. */
export const compareNames = (left: string, right: string): number =>
  left === right ? 0 : isHigh.test(left) || isHigh.test(right) ? compare(left, right) : left < right ? -1 : 1

/** The order of all results: segment by segment, by code points. A folder precedes its content. */
export const compare = (left: string, right: string): number => {
  const length = Math.min(left.length, right.length)
  let index = 0
  while (index < length && left.charCodeAt(index) === right.charCodeAt(index)) index++
  return rank(left, index) - rank(right, index)
}
