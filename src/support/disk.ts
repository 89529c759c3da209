/**
 * Explains failures of a file system to a person.
 */
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"

/** Failures that a person can do something about, by the code of the system. */
const known: { readonly [code: string]: string } = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of the disk is used up",
  EROFS: "the disk is read-only",
  EIO: "the disk can't be read or written"
}

const codeIn = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  return Predicate.hasProperty(error, "cause") ? codeIn(error.cause) : undefined
}

/** Explains a failure of a file system. */
export const problemOf = (error: PlatformError): string => {
  const code = codeIn(error) ?? /\bE[A-Z]{2,}\b/u.exec(error.message)?.[0]
  const explained = code === undefined ? undefined : known[code]
  if (explained !== undefined) return `${explained} (${code}): ${error.message}`
  return code === undefined || error.message.includes(code) ? error.message : `${error.message}: ${code}`
}
