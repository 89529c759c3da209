/** The reference backend: a map from paths to bytes, without effects. */
import * as Result from "effect/Result"
import type * as Backend from "../../../../core/Backend.ts"
import type { Reason } from "../../../../core/BackendError.ts"
import { compileGlob, compileIgnore } from "./globs.ts"
import { ancestors, comparePaths, isWithin, normalize, segments } from "./paths.ts"
import { compileSearch, searchText } from "./searches.ts"
import { applyEdits, decode, isBinary, isUtf8, mimeType, windowOf } from "./texts.ts"

/** The result of an operation, or the reason of its failure. */
export type Outcome<A> = Result.Result<A, Reason>

interface File {
  readonly bytes: Uint8Array
  readonly version: string
}

const defaultLimit = 1000

const limitOf = (limit: number | undefined): number =>
  limit === undefined || Number.isNaN(limit) ? defaultLimit : Math.max(0, Math.floor(limit))

const fail = (reason: Reason): Result.Result<never, Reason> => Result.fail(reason)

const hasSameBytes = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index])

/** Returns true if each line ends with CR and LF. */
const isCrlf = (text: string): boolean => text.includes("\r\n") && !/\r(?!\n)|(?<!\r)\n/.test(text)

/** Data for searches. */
interface SearchData {
  readonly files: ReadonlyMap<string, File>
  readonly isFolder: (path: string) => boolean
  readonly filesIn: (folder: string) => ReadonlyArray<string>
  readonly entryOf: (path: string) => Backend.Entry
}

const globOf = (pattern: string) =>
  Result.mapError(compileGlob(pattern), (problem): Reason => ({ _tag: "InvalidPattern", pattern, problem }))

type Matches = ReadonlyArray<Backend.GrepMatch>

/** Collects matches up to a limit. `add` returns true if the search continues. */
const collect = (mode: NonNullable<Backend.GrepQuery["mode"]>, limit: number) => {
  const hits: Array<Backend.GrepFile> = []
  let count = 0
  const add = (path: string, matches: Matches): boolean => {
    const room = mode === "content" ? limit - count : 1
    if (count < limit && (matches.length <= room || mode !== "content")) {
      hits.push({ path, count: matches.length, matches: mode === "content" ? matches : [] })
      count += mode === "content" ? matches.length : 1
      return true
    }
    const some = matches.slice(0, room)
    if (some.length > 0 && mode === "content") hits.push({ path, count: some.length, matches: some })
    return false
  }
  return { found: hits, add, most: () => (mode === "count" ? Infinity : mode === "files" ? 1 : limit - count + 1) }
}

const searchesOf = ({ entryOf, files, filesIn, isFolder }: SearchData) => {
  const searched = (rawPath: string | undefined, ignored: boolean | undefined) =>
    Result.gen(function* () {
      const folder = yield* normalize(rawPath ?? "/")
      if (!files.has(folder) && !isFolder(folder)) return yield* fail({ _tag: "NotFound" })
      const rules = Array.from(files).flatMap(([path, { bytes }]) =>
        path.endsWith("/.gitignore") ? [[path.slice(0, -"/.gitignore".length) || "/", decode(bytes)] as const] : []
      )
      const isIgnored = ignored === true ? () => false : compileIgnore(new Map(rules))
      const relative = (path: string) => path.slice(folder === "/" ? 1 : folder.length + 1)
      return { relative, paths: [...filesIn(folder)].sort(comparePaths).filter((path) => !isIgnored(path)) }
    })

  return {
    grep: (query: Backend.GrepQuery): Outcome<Backend.GrepResult> =>
      Result.gen(function* () {
        const { pattern } = query
        const find = yield* Result.mapError(compileSearch(query), (problem): Reason => ({
          _tag: "InvalidPattern",
          pattern,
          problem
        }))
        const isWanted = query.glob === undefined ? () => true : yield* globOf(query.glob)
        const { paths, relative } = yield* searched(query.path, query.ignored)
        const { add, found, most } = collect(query.mode ?? "content", limitOf(query.limit))
        for (const path of paths) {
          const bytes = files.get(path)?.bytes ?? new Uint8Array()
          if (!isWanted(relative(path) || path) || isBinary(bytes)) continue
          const matches = searchText(decode(bytes), find, query.context ?? 0, most())
          if (matches.length > 0 && !add(path, matches)) return { files: found, truncated: "limit" as const }
        }
        return { files: found }
      }),

    glob: (query: Backend.GlobQuery): Outcome<Backend.Listing> =>
      Result.gen(function* () {
        const matches = yield* globOf(query.pattern)
        const { paths, relative } = yield* searched(query.path, query.ignored)
        const limit = limitOf(query.limit)
        const hits = paths.filter((path) => matches(relative(path)))
        const entries = hits.slice(0, limit).map(entryOf)
        return hits.length > limit ? { entries, truncated: "limit" as const } : { entries }
      })
  }
}

/** Files in memory. A folder exists while it contains files. */
export const fakeOf = (maxFileSize: number) => {
  const files = new Map<string, File>()
  /** Counts the files in a folder, at any depth. */
  const folders = new Map<string, number>()
  let changes = 0

  const count = (path: string, by: number): void => {
    for (const folder of ancestors(path)) folders.set(folder, (folders.get(folder) ?? 0) + by)
  }

  const setFile = (path: string, file: File): void => {
    if (!files.has(path)) count(path, 1)
    files.set(path, file)
  }

  const unset = (path: string): void => {
    if (files.delete(path)) count(path, -1)
  }

  const filesIn = (folder: string): ReadonlyArray<string> =>
    Array.from(files.keys()).filter((path) => isWithin(path, folder))

  const isFolder = (path: string): boolean => path === "/" || (folders.get(path) ?? 0) > 0

  const fileAt = (rawPath: string): Outcome<readonly [path: string, file: File]> =>
    Result.gen(function* () {
      const path = yield* normalize(rawPath)
      const file = files.get(path)
      if (file === undefined) return yield* fail({ _tag: isFolder(path) ? "IsDirectory" : "NotFound" })
      return [path, file] as const
    })

  const putBytes = (path: string, bytes: Uint8Array): Backend.WriteResult => {
    const before = files.get(path)
    const version = before !== undefined && hasSameBytes(before.bytes, bytes) ? before.version : `v${++changes}`
    setFile(path, { bytes: bytes.slice(), version })
    return { path, created: before === undefined, version }
  }

  const write = (
    rawPath: string,
    bytes: Uint8Array,
    options: { readonly create?: boolean | undefined; readonly version?: string | undefined } = {}
  ): Outcome<Backend.WriteResult> =>
    Result.gen(function* () {
      const path = yield* normalize(rawPath)
      if (isFolder(path)) return yield* fail({ _tag: "IsDirectory" })
      if (ancestors(path).some((folder) => files.has(folder))) return yield* fail({ _tag: "NotDirectory" })
      const before = files.get(path)
      if (options.create === true && before !== undefined) return yield* fail({ _tag: "AlreadyExists" })
      if (options.version !== undefined && before?.version !== options.version) return yield* fail({ _tag: "Conflict" })
      return putBytes(path, bytes)
    })

  const entryOf = (path: string): Backend.Entry => {
    const file = files.get(path)
    return file === undefined ? { path, kind: "directory" } : { path, kind: "file", size: file.bytes.length }
  }

  return {
    write,

    ls: (rawPath: string): Outcome<Backend.Listing> =>
      Result.gen(function* () {
        const folder = yield* normalize(rawPath)
        if (files.has(folder)) return yield* fail({ _tag: "NotDirectory" })
        if (!isFolder(folder)) return yield* fail({ _tag: "NotFound" })
        const depth = segments(folder).length + 1
        const paths = new Set(filesIn(folder).map((path) => `/${segments(path).slice(0, depth).join("/")}`))
        return { entries: Array.from(paths).sort(comparePaths).map(entryOf) }
      }),

    read: (rawPath: string, window: Backend.Window): Outcome<Backend.TextFile | Backend.BinaryFile> =>
      Result.map(fileAt(rawPath), ([path, { bytes, version }]): Backend.TextFile | Backend.BinaryFile =>
        isBinary(bytes)
          ? { kind: "binary", path, mimeType: mimeType(path), size: bytes.length, version }
          : {
              kind: "text",
              path,
              ...windowOf(decode(bytes), window),
              ...(isCrlf(decode(bytes)) ? { crlf: true } : {}),
              size: bytes.length,
              version
            }
      ),

    edit: (
      rawPath: string,
      replacements: ReadonlyArray<Backend.Replacement>,
      options: { readonly version?: string | undefined }
    ): Outcome<Backend.EditResult> =>
      Result.gen(function* () {
        const [path, { bytes, version }] = yield* fileAt(rawPath)
        if (options.version !== undefined && options.version !== version) return yield* fail({ _tag: "Conflict" })
        if (isBinary(bytes) || !isUtf8(bytes)) return yield* fail({ _tag: "NotText", mimeType: mimeType(path) })
        const { lines, replaced, text } = yield* applyEdits(decode(bytes), replacements)
        return { path, replaced, lines, version: putBytes(path, new TextEncoder().encode(text)).version }
      }),

    remove: (rawPath: string, recursive: boolean): Outcome<void> =>
      Result.gen(function* () {
        const path = yield* normalize(rawPath)
        if (path === "/") return yield* fail({ _tag: "InvalidPath", problem: "the root can't be deleted" })
        const all = filesIn(path)
        if (all.length === 0) return yield* fail({ _tag: "NotFound" })
        if (!files.has(path) && !recursive) return yield* fail({ _tag: "IsDirectory" })
        for (const one of all) unset(one)
      }),

    move: (givenFrom: string, givenTo: string): Outcome<void> =>
      Result.gen(function* () {
        const from = yield* normalize(givenFrom)
        const to = yield* normalize(givenTo)
        if (from === "/") return yield* fail({ _tag: "InvalidPath", problem: "the root can't be moved" })
        const all = filesIn(from)
        if (all.length === 0) return yield* fail({ _tag: "NotFound" })
        if (isWithin(to, from)) return yield* fail({ _tag: "InvalidPath", problem: "it can't be moved into itself" })
        if (files.has(to) || isFolder(to)) return yield* fail({ _tag: "AlreadyExists" })
        if (ancestors(to).some((folder) => files.has(folder))) return yield* fail({ _tag: "NotDirectory" })
        for (const path of all) {
          const file = files.get(path)
          if (file !== undefined) setFile(to + path.slice(from.length), file)
          unset(path)
        }
      }),

    ...searchesOf({ files, isFolder, filesIn, entryOf }),

    upload: (path: string, content: Uint8Array): Outcome<Backend.WriteResult> =>
      content.length > maxFileSize
        ? fail({ _tag: "TooLarge", size: content.length, limit: maxFileSize })
        : write(path, content),

    download: (rawPath: string): Outcome<Uint8Array> =>
      Result.flatMap(fileAt(rawPath), ([, { bytes }]) =>
        bytes.length > maxFileSize
          ? fail({ _tag: "TooLarge", size: bytes.length, limit: maxFileSize })
          : Result.succeed(bytes.slice())
      ),

    snapshot: (): Readonly<Record<string, string | Uint8Array>> =>
      Object.fromEntries(
        Array.from(files)
          .sort(([left], [right]) => comparePaths(left, right))
          .map(([path, { bytes }]) => [path, isBinary(bytes) || !isUtf8(bytes) ? bytes.slice() : decode(bytes)])
      )
  }
}
