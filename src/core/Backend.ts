/**
 * The files of an agent: one service, many layers (memory, a folder, a key-value store, a sandbox …).
 *
 * Paths are absolute and POSIX on every layer: `/` is the root of the backend, not of the machine. A path without a
 * leading `/` starts at the root. `..`, a leading `~`, drive letters, backslashes and NUL are rejected. Names are
 * compared as bytes, without case folding or Unicode normalisation.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Backend } from "effect-deepagents"
 *
 * const rename = Effect.gen(function* () {
 *   const backend = yield* Backend.Backend
 *   const { version } = yield* backend.read("/notes.md")
 *   yield* backend.edit("/notes.md", [{ old: "Ada", new: "Grace" }], { version })
 * })
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { wholeSpan } from "../support/effect/span.ts"
import type { BackendError } from "./BackendError.ts"

/**
 * An entry of a directory or a search result. `size` is in bytes, `modifiedAt` in milliseconds since the epoch. A link
 * has the kind of its target; kind `link` is a link that is broken or leaves the root.
 */
export interface Entry {
  readonly path: string
  readonly kind: "file" | "directory" | "link"
  readonly size?: number
  readonly modifiedAt?: number
}

/** A list of entries; `truncated` says why it is incomplete. */
export interface Listing {
  readonly entries: ReadonlyArray<Entry>
  readonly truncated?: Truncation
}

/** The reason that a result is not complete: it has as many as were asked for, or the time was up. */
export type Truncation = "limit" | "time"

/**
 * The part of a text to read. `offset` is the first line, counted from 1 (default 1), `limit` how many lines (default
 * 2,000; 0 reads none, and says how long the file is). `column` skips that many characters of the first line, to page
 * through a line that is longer than a window.
 */
export interface Window {
  readonly offset?: number | undefined
  readonly limit?: number | undefined
  readonly column?: number | undefined
}

/**
 * A window of a text file. `text` has its lines joined by `
 * `, without a final one. `startLine` to `endLine` of `totalLines` count from 1; an empty window has `endLine` before
 * `startLine`. At most 256 KiB: `nextColumn` is set if the window ends within a line. `crlf` is set if all lines of the
 * file end with `\r
 * `.
 */
export interface TextFile {
  readonly kind: "text"
  readonly path: string
  readonly text: string
  readonly startLine: number
  readonly endLine: number
  readonly totalLines: number
  readonly nextColumn?: number
  readonly crlf?: boolean
  readonly size: number
  readonly version: string
}

/** A file that is not text. Its bytes are read by `download`. */
export interface BinaryFile {
  readonly kind: "binary"
  readonly path: string
  readonly mimeType: string
  readonly size: number
  readonly version: string
}

/** The result of a write. `version` is the new version of the file. */
export interface WriteResult {
  readonly path: string
  readonly created: boolean
  readonly version: string
}

/** One replacement: literal text for literal text. Without `replaceAll`, `old` must be in the file exactly once. */
export interface Replacement {
  readonly old: string
  readonly new: string
  readonly replaceAll?: boolean | undefined
}

/**
 * The result of an edit: how many places were replaced, and the lines of the new file at which they begin. `isInexact` is
 * true if a text was there but for quotes, dashes, special spaces, composed characters or spaces at the ends of lines.
 */
export interface EditResult {
  readonly path: string
  readonly replaced: number
  readonly lines: ReadonlyArray<number>
  readonly isInexact?: boolean
  readonly version: string
}

/**
 * A query for lines of files.
 *
 * - `pattern`: literal text, or with `regex` a regular expression in RE2 syntax (no look-around, no back-references, so
 *   it takes linear time), matched line by line
 * - `path`: a file, or a directory to search (default `/`)
 * - `glob`: the files to search
 * - `context`: the number of lines around each match
 * - `mode`: `content` returns lines, `count` the number per file, `files` only the files
 * - `limit`: the most lines for `content` (default 1,000), else the most files
 * - `ignored`: searches files that ignore files name, and `.git`
 */
export interface GrepQuery {
  readonly pattern: string
  readonly regex?: boolean | undefined
  readonly ignoreCase?: boolean | undefined
  readonly path?: string | undefined
  readonly glob?: string | undefined
  readonly mode?: "content" | "count" | "files" | undefined
  readonly context?: number | undefined
  readonly limit?: number | undefined
  readonly ignored?: boolean | undefined
}

/** A line that matches, counted from 1, and its surroundings. Very long lines are cut around the match. */
export interface GrepMatch {
  readonly line: number
  readonly text: string
  readonly before: ReadonlyArray<string>
  readonly after: ReadonlyArray<string>
}

/** A file with matches; `count` is its number of matching lines (1 in mode `files`). */
export interface GrepFile {
  readonly path: string
  readonly count: number
  readonly matches: ReadonlyArray<GrepMatch>
}

/** The matches of a search, by path. Binary files are not looked into; neither are links followed. */
export interface GrepResult {
  readonly files: ReadonlyArray<GrepFile>
  readonly truncated?: Truncation
}

/**
 * A search for files. `*` and `?` stay in one name, `**` crosses directories, `{a,b}`, `[a-z]` and `[!a]` work, dot
 * files are matched. A pattern without `/` matches names at any depth; one with `/` starts at `path` (default `/`).
 */
export interface GlobQuery {
  readonly pattern: string
  readonly path?: string | undefined
  readonly limit?: number | undefined
  readonly ignored?: boolean | undefined
}

/** The outcome for one of several files, in the order of the request. */
export type Transfer<A> =
  | { readonly path: string; readonly ok: true; readonly value: A }
  | { readonly path: string; readonly ok: false; readonly error: BackendError }

/** A planned change. Work that reads a file before it changes the file plans the read too. */
export type PlannedChange =
  | { readonly operation: "read" | "write" | "delete"; readonly path: string }
  | { readonly operation: "move"; readonly from: string; readonly to: string }

/** Changes that are made together. `text` shows them to a person: a patch, as it was written. */
export interface Plan {
  readonly text: string
  readonly changes: ReadonlyArray<PlannedChange>
}

/** Runs work for which a plan was permitted. */
export type Permit = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * How paths are written where the root is not the working folder: in the files of a whole machine. All are absolute.
 */
export interface Paths {
  /** The working folder: relative paths count from it, and commands run in it. */
  readonly cwd: string
  /** The folder that `~` stands for. */
  readonly home: string
  /** The folder for files that nobody asked for, such as large results and old conversations. */
  readonly scratch: string
}

/**
 * The operations. Result paths are normalised and absolute. Writes are atomic, create missing directories and keep a
 * file's mode; edits keep its line endings. A write or an edit with a `version` fails with `Conflict` if the file has
 * another version.
 *
 * - `ls`: lists a directory, by name
 * - `read`: reads a window of a text; describes a binary file
 * - `write`: replaces a file; with `create` it fails with `AlreadyExists` if the file exists
 * - `edit`: applies replacements in order, all or none
 * - `delete`: deletes a file, a link (never its target) or an empty directory; with `recursive` a whole directory
 * - `move`: moves a file or a directory; fails with `AlreadyExists` instead of overwriting
 * - `grep`, `glob`: search files, sorted by path; `limit` defaults to 1,000. `glob` gives sizes and times if they are free
 * - `upload`, `download`: transfer the bytes of many files, at most 10 MiB each unless the layer says otherwise
 */
export interface Service {
  readonly ls: (path: string) => Effect.Effect<Listing, BackendError>
  readonly read: (path: string, window?: Window) => Effect.Effect<TextFile | BinaryFile, BackendError>
  readonly write: (
    path: string,
    content: string,
    options?: {
      /** Fails if the file exists. Default: `false`. */
      readonly create?: boolean | undefined
      /** Fails if the file has another version. Default: any. */
      readonly version?: string | undefined
    }
  ) => Effect.Effect<WriteResult, BackendError>
  readonly edit: (
    path: string,
    replacements: ReadonlyArray<Replacement>,
    options?: {
      /** Fails if the file has another version. Default: any. */
      readonly version?: string | undefined
    }
  ) => Effect.Effect<EditResult, BackendError>
  readonly delete: (
    path: string,
    options?: {
      /** Deletes a directory with all that is in it. Default: `false`. */
      readonly recursive?: boolean | undefined
    }
  ) => Effect.Effect<void, BackendError>
  readonly move: (from: string, to: string) => Effect.Effect<void, BackendError>
  readonly grep: (query: GrepQuery) => Effect.Effect<GrepResult, BackendError>
  readonly glob: (query: GlobQuery) => Effect.Effect<Listing, BackendError>
  readonly upload: (
    files: ReadonlyArray<{ readonly path: string; readonly content: Uint8Array }>
  ) => Effect.Effect<ReadonlyArray<Transfer<WriteResult>>>
  readonly download: (paths: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Transfer<Uint8Array>>>
  /**
   * Resolves all links in paths, in the order of the request; missing ends stay as they are. `undefined`: the path
   * leaves the root, or links form a circle. Names come in stored case, if the backend folds case. Rules are checked
   * against both paths. A backend without `realPaths` has no links and folds nothing.
   */
  readonly realPaths?:
    | ((paths: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string | undefined>, BackendError>)
    | undefined
  /**
   * Asks for permission for several changes before the first; fails if any is forbidden. Work run by the returned
   * `Permit` is not asked about again, not even to undo the changes. A backend without `permit` asks nobody.
   */
  readonly permit?: ((plan: Plan) => Effect.Effect<Permit, BackendError>) | undefined
  /** How paths are written. Without it, relative paths count from the root, which is the working folder. */
  readonly paths?: Paths | undefined
  /** Set if the files lie in the file system of this machine, and the commands (of a sandbox) run there unconfined. */
  readonly onHost?: boolean | undefined
}

/**
 * The copy of files that a rehearsal works on: its changes stay in memory. A tool that acts on files alone may act when
 * it is rehearsed, if its `Backend` is this one.
 */
export const Copy = Context.Reference<Service | undefined>("effect-deepagents/Backend/Copy", {
  defaultValue: () => undefined
})

/** The files of an agent. */
export class Backend extends Context.Service<Backend, Service>()("effect-deepagents/Backend") {}

/**
 * The same backend with a span for each operation: `Backend.write` and the like, with the path as an attribute. All
 * layers have them already; parts of one operation (a backend of a composite, one behind rules) add no spans.
 */
export const traced = (service: Service): Service => ({
  ...service,
  ls: (path) => wholeSpan("Backend.ls", path)(service.ls(path)),
  read: (path, window) => wholeSpan("Backend.read", path)(service.read(path, window)),
  write: (path, content, options) => wholeSpan("Backend.write", path)(service.write(path, content, options)),
  edit: (path, replacements, options) => wholeSpan("Backend.edit", path)(service.edit(path, replacements, options)),
  delete: (path, options) => wholeSpan("Backend.delete", path)(service.delete(path, options)),
  move: (from, to) => wholeSpan("Backend.move", from)(service.move(from, to)),
  grep: (query) => wholeSpan("Backend.grep", query.path)(service.grep(query)),
  glob: (query) => wholeSpan("Backend.glob", query.path)(service.glob(query)),
  upload: (files) => wholeSpan("Backend.upload")(service.upload(files)),
  download: (paths) => wholeSpan("Backend.download")(service.download(paths))
})

/** Makes the layer of a backend, with a span for each operation. */
export const layer = <E, R>(make: Effect.Effect<Service, E, R>): Layer.Layer<Backend, E, Exclude<R, Scope.Scope>> =>
  Layer.effect(Backend, Effect.map(make, traced))
