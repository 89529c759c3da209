/** The types that a backend is derived from; public by `CustomBackend`. */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"

/**
 * The content of a file: bytes, or a text, from a backend that keeps text as text (it is UTF-8 to whoever wants bytes).
 */
export type Content = string | Uint8Array

/** Some bytes of a file: from `start` up to, but without, `end`, counted from 0. */
export interface Range {
  readonly start: number
  readonly end: number
}

/**
 * The file, directory or link at a path. `size` is in bytes, `modifiedAt` in milliseconds since the epoch.
 *
 * A link has the kind of what it leads to, and `isLink`; one that leads nowhere, or out of the root, has the kind
 * `link`. `version` is any text that changes with each change of the content; without it, a hash of the content is
 * taken, for which the file is read.
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
 * The primitives of a backend. Paths are normalised and absolute, and have been checked; `/` is the root. Failures say
 * their reason; which operation it was, and the path as it was given, is put in here.
 *
 * - `stat`: what is at a path, `undefined` if nothing is (also where the way there leads through a file)
 * - `list`: what is in a directory, in any order
 * - `read`: what a file holds, or a range of it; a text is given whole, whatever the range
 * - `write`: replaces a file as a whole, so that a reader sees the old one or the new one, and makes missing
 *   directories. With `create` there was no file a moment ago; if there can be other writers, fail with `AlreadyExists`
 *   rather than overwrite. Gives the version, if `stat` gives versions
 * - `remove`: a file, a link (not what it leads to) or an empty directory
 * - `rename`: a file or a link; nothing is at `to`, and its directory may be missing
 *
 * These are for who has more:
 *
 * - `renameDirectory`: moves a directory at once; otherwise its files are moved one after the other
 * - `stream`: the bytes of a file piece by piece, of one and the same file even if it is replaced meanwhile. Without
 *   it,
 *   files that are larger than `maxFileSize` are read by ranges
 * - `resolve`: where a path leads, all links in it followed; names that are not there are taken as they are. Fails with
 *   `OutsideRoot` for what leaves the root and for loops. The others are then asked for what it gives; for a link that
 *   is deleted or moved, only its directory is looked up
 */
export interface Primitives {
  readonly stat: (path: string) => Effect.Effect<Stat | undefined, BackendError>
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<Child>, BackendError>
  readonly read: (path: string, range?: Range) => Effect.Effect<Content, BackendError>
  readonly write: (
    path: string,
    content: Content,
    options: { readonly create: boolean }
  ) => Effect.Effect<string | void, BackendError>
  readonly remove: (path: string) => Effect.Effect<void, BackendError>
  readonly rename: (from: string, to: string) => Effect.Effect<void, BackendError>
  readonly renameDirectory?: ((from: string, to: string) => Effect.Effect<void, BackendError>) | undefined
  readonly stream?: ((path: string) => Stream.Stream<Uint8Array, BackendError>) | undefined
  readonly resolve?: ((path: string) => Effect.Effect<string, BackendError>) | undefined
}

/**
 * `maxFileSize` bounds what is written, edited, uploaded and downloaded, in bytes a file (default 10 MiB).
 * `concurrency` is how many files a search reads at once, for what is far away (default 1).
 */
export interface Options {
  readonly maxFileSize?: number | undefined
  readonly concurrency?: number | undefined
}
