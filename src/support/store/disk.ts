/** Explains failures of a file system to a person. */
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import { valueAt } from "../json/valueAt.ts"

/** Failures that a person can do something about, by the code of the system. */
const explanations: { readonly [code: string]: string } = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of the disk is used up",
  EROFS: "the disk is read-only",
  EIO: "the disk can't be read or written",
  EACCES: "its rights, or those of a folder above it, do not let you",
  EPERM: "its rights, or those of a folder above it, do not let you",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is a file, and no folder",
  ENOENT: "it is not there",
  ELOOP: "its link leads in a circle"
}

const codeIn = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  return Predicate.hasProperty(error, "cause") ? codeIn(error.cause) : undefined
}

/** Explains a failure of a file system, with the path that it is about. */
export const problemOf = (error: PlatformError): string => {
  const code = codeIn(error) ?? /\bE[A-Z]{2,}\b/u.exec(error.message)?.[0]
  if (code === undefined) return error.message
  const explained = valueAt(explanations, code)
  const path = "pathOrDescriptor" in error.reason ? error.reason.pathOrDescriptor : undefined
  if (explained !== undefined) {
    return path === undefined ? `${explained} (${code}): ${error.message}` : `${path}: ${explained} (${code})`
  }
  return error.message.includes(code) ? error.message : `${error.message}: ${code}`
}
