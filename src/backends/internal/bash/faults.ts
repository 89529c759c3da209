/** Failures of a backend as a shell knows them. */
import type { BackendError } from "../../../core/BackendError.ts"
import type { Code, Fault } from "./errors.ts"

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
