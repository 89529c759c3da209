/** The types that a backend is derived from; public by `CustomBackend`. */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"

/** The content of a file: bytes, or text from a backend that stores text. Text stands for its UTF-8 bytes. */
export type Content = string | Uint8Array

/** A range of bytes, from `start` up to but excluding `end`. */
export interface Range {
  readonly start: number
  readonly end: number
}

/**
 * The file, directory or link at a path. `size` is in bytes, `modifiedAt` in milliseconds since the epoch.
 *
 * A link has the kind of its target and `isLink`; a link that is dangling or leaves the root has the kind `link`.
 * `version` is any text that changes with the content. Without it, the file is read and hashed.
 */
export interface Stat {
  readonly kind: "file" | "directory" | "link"
  readonly size?: number | undefined
  readonly modifiedAt?: number | undefined
  readonly isLink?: boolean | undefined
  readonly version?: string | undefined
}

/** An entry of a directory: a name (not a path), and its kind. */
export interface Child extends Omit<Stat, "version"> {
  readonly name: string
}

/**
 * The primitives of a backend. Paths are valid, normalised and absolute; `/` is the root. Failures need only a
 * reason: the operation and the original path are filled in.
 *
 * - `stat`: looks up a path; `undefined` if nothing is there, also below a file
 * - `list`: lists a directory in any order
 * - `read`: reads a file or a range of it; text is always returned whole
 * - `write`: replaces a file atomically, and creates missing directories. `create` expects no file: with concurrent
 *   writers, fail with `AlreadyExists` instead of overwriting. Returns the version, if `stat` gives versions
 * - `remove`: removes a file, a link (not its target) or an empty directory
 * - `rename`: renames a file or a link; `to` is free, but its directory may be missing
 *
 * Optional primitives:
 *
 * - `renameDirectory`: moves a directory at once; otherwise its files are moved one by one
 * - `stream`: streams the bytes of a file, consistently even if it is replaced meanwhile. Without it, files larger
 *   than `maxFileSize` are read by ranges
 * - `resolve`: resolves all links of a path; missing names stay as they are. Fails with `OutsideRoot` for a path out
 *   of the root and for a loop. The other primitives receive the result; to delete or move a link, only its
 *   directory is resolved
 */
export interface Primitives {
  readonly stat: (path: string) => Effect.Effect<Stat | undefined, BackendError>
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<Child>, BackendError>
  readonly read: (path: string, range?: Range) => Effect.Effect<Content, BackendError>
  readonly write: (
    path: string,
    content: Content,
    options: {
      /** True if the write must fail when the file exists. */
      readonly create: boolean
    }
  ) => Effect.Effect<string | void, BackendError>
  readonly remove: (path: string) => Effect.Effect<void, BackendError>
  readonly rename: (from: string, to: string) => Effect.Effect<void, BackendError>
  readonly renameDirectory?: ((from: string, to: string) => Effect.Effect<void, BackendError>) | undefined
  readonly stream?: ((path: string) => Stream.Stream<Uint8Array, BackendError>) | undefined
  readonly resolve?: ((path: string) => Effect.Effect<string, BackendError>) | undefined
}

/** Options of a derived backend. */
export interface Options {
  /** The largest file to write, edit, upload or download, in bytes. Default: 10 MiB. */
  readonly maxFileSize?: number | undefined
  /** The number of files that a search reads at once, for slow storage. Default: 1. */
  readonly concurrency?: number | undefined
}
