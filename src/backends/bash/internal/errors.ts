/**
 * Failures of a backend as a shell knows them.
 */
import type { BackendError } from "../../../core/BackendError.ts"

const known = {
  ENOENT: "no such file or directory",
  EEXIST: "file already exists",
  EISDIR: "illegal operation on a directory",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EINVAL: "invalid argument",
  EFBIG: "file too large",
  EIO: "input/output error"
} as const

export type Code = keyof typeof known

/** What a call of a file system fails with. */
export interface Fault {
  readonly code: Code
  readonly call: string
  readonly path: string
}

const codes: { readonly [Tag in BackendError["reason"]["_tag"]]: Code } = {
  NotFound: "ENOENT",
  AlreadyExists: "EEXIST",
  IsDirectory: "EISDIR",
  NotDirectory: "ENOTDIR",
  InvalidPath: "EINVAL",
  InvalidPattern: "EINVAL",
  OutsideRoot: "EACCES",
  PermissionDenied: "EACCES",
  NotUnique: "EIO",
  NoMatch: "EIO",
  TooLarge: "EFBIG",
  NotText: "EIO",
  Conflict: "EIO",
  Unsupported: "EPERM",
  TimedOut: "EIO",
  Unavailable: "EIO"
}

export const faultOf =
  (call: string, path: string) =>
  (error: BackendError): Fault => ({ code: codes[error.reason._tag], call, path })

export const toError = ({ call, code, path }: Fault): Error =>
  Object.assign(new Error(`${code}: ${known[code]}, ${call} '${path}'`), { code })

/**
 * What a shell says of a failure that just-bash lets through: one of a redirection, which ends the whole line there.
 */
export const complaintOf = (cause: unknown): string | undefined => {
  if (!(cause instanceof Error)) return undefined
  const [, code = "", path] = /^(E[A-Z]+): .*?(?:'(.*)')?$/s.exec(cause.message) ?? []
  const said = Object.entries(known).find(([one]) => one === code)?.[1]
  return said === undefined ? undefined : `bash: ${path === undefined ? "" : `${path}: `}${said}\n`
}
