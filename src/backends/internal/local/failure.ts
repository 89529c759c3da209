/** Failures of the operating system, as the reason of a backend's error. */
import * as Effect from "effect/Effect"
import { type BackendError, make, type Reason } from "../../../core/BackendError.ts"
import { valueAt } from "../../../support/json/valueAt.ts"

/** A failure before it is known which operation of which path it belongs to. */
export interface Fault {
  readonly reason: Reason
  readonly detail?: string | undefined
  readonly cause?: unknown
}

/** Makes a fault. The model sees `detail`, so it must contain no real path of the machine. */
export const fault = (reason: Reason, detail?: string): Fault =>
  detail === undefined ? { reason } : { reason, detail }

export const outside: Fault = { reason: { _tag: "OutsideRoot" } }

export const special = fault({ _tag: "Unsupported" }, "this is a device, a socket or a pipe, not a regular file")

/** The locks of the database would be lost: see `support/store/sqliteFiles.ts`. */
export const openDatabase = fault(
  { _tag: "PermissionDenied" },
  "this program has it open as an SQLite database; read it with a command, such as sqlite3"
)

const unavailable = (detail: string): Fault => fault({ _tag: "Unavailable" }, detail)

const verdicts: { readonly [code: string]: Fault | undefined } = {
  ENOENT: { reason: { _tag: "NotFound" } },
  EEXIST: { reason: { _tag: "AlreadyExists" } },
  EISDIR: { reason: { _tag: "IsDirectory" } },
  ENOTEMPTY: fault({ _tag: "IsDirectory" }, "it is not empty"),
  ENOTDIR: { reason: { _tag: "NotDirectory" } },
  ELOOP: outside,
  EACCES: { reason: { _tag: "PermissionDenied" } },
  EPERM: { reason: { _tag: "PermissionDenied" } },
  EROFS: fault({ _tag: "PermissionDenied" }, "the file system is read-only"),
  ENAMETOOLONG: { reason: { _tag: "InvalidPath", problem: "it is too long for this file system" } },
  EILSEQ: { reason: { _tag: "InvalidPath", problem: "this file system does not take such names" } },
  EXDEV: fault(
    { _tag: "Unsupported" },
    "the two paths are on different file systems; write the file anew and delete the old one"
  ),
  ENXIO: special,
  ENODEV: special,
  ENOSPC: unavailable("the disk is full"),
  EDQUOT: unavailable("the disk quota is used up"),
  EFBIG: unavailable("the file would be larger than the system allows"),
  EMFILE: unavailable("too many open files; try again"),
  ENFILE: unavailable("too many open files; try again"),
  EAGAIN: unavailable("the system has no resources left; try again"),
  ENOMEM: unavailable("the system has no memory left; try again"),
  EBUSY: unavailable("this is in use; try again"),
  ETXTBSY: unavailable("this is a program that is running; try again"),
  EIO: unavailable("the disk reports an error")
}

/** Translates a system error (`ENOENT`). The error itself names real paths: it is the cause, which stays in the log. */
export const fromSystem = (cause: NodeJS.ErrnoException): Fault => ({
  ...(valueAt(verdicts, cause.code) ?? unavailable(cause.code ?? "unknown error")),
  cause
})

/** The failure of an operation at a path. */
export const toBackendError =
  (operation: string, path: string) =>
  ({ reason, ...more }: Fault): BackendError =>
    make(operation, path, reason, more)

/** Maps a fault to the failure of an operation on a path. */
export const on = <A, R>(
  operation: string,
  path: string,
  effect: Effect.Effect<A, Fault, R>
): Effect.Effect<A, BackendError, R> => Effect.mapError(effect, toBackendError(operation, path))
