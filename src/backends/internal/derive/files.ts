/** The derived operations on one path: `ls`, `read`, `write` and `edit`. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import { defined } from "../../../support/json/defined.ts"
import { mimeTypeOf, sniffLength } from "../files/mime.ts"
import * as Path from "../files/path.ts"
import { applyEdits } from "../text/edit.ts"
import { decodeFile, decodeOther, type DecodedText, encodeFile, type Encoding } from "../text/encoding.ts"
import { makeWindowReader, type ReadWindow, windowOf } from "../text/lines.ts"
import type { Child, Content, Stat } from "./primitives.ts"
import {
  checkContent,
  checkSize,
  checkWay,
  fail,
  type Failing,
  find,
  findFile,
  on,
  type SearchTarget,
  type Source,
  type Target,
  toBytes,
  versionFor
} from "./target.ts"
import { digest, versionOf } from "./version.ts"

/** The bytes from which a window reads a file in pieces, if the backend can. */
const wholeUpTo = 1024 * 1024

export const entryOf = (path: string, { kind, modifiedAt, size }: Stat | Child): Backend.Entry =>
  defined({ path, kind, size: kind === "file" ? size : undefined, modifiedAt })

export const ls =
  (source: Source): Backend.Service["ls"] =>
  (path) =>
    on(
      source,
      "ls",
      path,
      Effect.fnUntraced(function* (target) {
        const stat = yield* find(source, target)
        if (stat.kind === "link") return yield* fail(target, { _tag: "OutsideRoot" })
        if (stat.kind === "file") return yield* fail(target, { _tag: "NotDirectory" })
        const children = yield* source.primitives.list(target.real)
        const entries = children.map((child) => entryOf(Path.join(target.normal, child.name), child))
        return { entries: entries.sort((left, right) => Path.compare(left.path, right.path)) }
      })
    )

/** Reports whether a file is read in pieces. */
export const isLarge = (source: SearchTarget, { size = 0 }: Pick<Stat, "size">): boolean =>
  size > (source.primitives.stream === undefined ? Math.max(wholeUpTo, source.maxFileSize) : wholeUpTo)

/** The bytes of a large file, a piece at a time. */
export const pieces = (source: SearchTarget, target: Target, size: number): Stream.Stream<Uint8Array, BackendError> => {
  const { read, stream } = source.primitives
  if (stream !== undefined) return stream(target.real)
  return Stream.range(0, Math.ceil(size / wholeUpTo) - 1).pipe(
    Stream.mapEffect((index) => {
      const start = index * wholeUpTo
      return Effect.map(read(target.real, { start, end: Math.min(size, start + wholeUpTo) }), toBytes)
    })
  )
}

interface FileRead {
  readonly excerpt: ReadWindow
  readonly size: number
  readonly version: string
  /** The whole file, if it is at hand. */
  readonly bytes?: Uint8Array
}

/** Reads a file that is no UTF-8 as the text that it is; `undefined` if it is none, or too large. */
const readOther = (source: Source, target: Target, size: number, bytes: Uint8Array | undefined) =>
  size > source.maxFileSize
    ? Effect.undefined
    : Effect.map(
        bytes === undefined ? Effect.map(source.primitives.read(target.real), toBytes) : Effect.succeed(bytes),
        (all) => decodeOther(target.normal, all)?.text
      )

const readPieces = (
  source: Source,
  target: Target,
  stat: Stat,
  window: Backend.Window | undefined
): Failing<FileRead> =>
  Effect.suspend(() => {
    const reader = makeWindowReader(window)
    const hash = stat.version === undefined ? digest() : undefined
    let size = 0
    let wanted = true
    return Stream.runForEachWhile(pieces(source, target, stat.size ?? 0), (piece) =>
      Effect.sync(() => {
        size += piece.length
        hash?.add(piece)
        wanted = wanted && reader.push(piece)
        return wanted || hash !== undefined
      })
    ).pipe(
      Effect.map(() => ({
        excerpt: reader.end(),
        size: wanted ? size : (stat.size ?? size),
        version: stat.version ?? hash?.version() ?? ""
      }))
    )
  })

export const read =
  (source: Source): Backend.Service["read"] =>
  (path, window) =>
    on(
      source,
      "read",
      path,
      Effect.fnUntraced(function* (target) {
        const stat = yield* findFile(source, target)
        const reading = isLarge(source, stat)
          ? yield* readPieces(source, target, stat, window)
          : yield* Effect.map(source.primitives.read(target.real), (content): FileRead => {
              const bytes = toBytes(content)
              return { excerpt: windowOf(bytes, window), size: bytes.length, version: versionFor(stat, bytes), bytes }
            })
        const { size, version } = reading
        const other =
          reading.excerpt.kind === "binary" ? yield* readOther(source, target, size, reading.bytes) : undefined
        const excerpt = other === undefined ? reading.excerpt : windowOf(other, window)
        if (excerpt.kind === "binary") {
          const mimeType = mimeTypeOf(target.normal, excerpt.head)
          return { kind: "binary" as const, path: target.normal, mimeType, size, version }
        }
        return { kind: "text" as const, path: target.normal, ...excerpt.window, size, version }
      })
    )

interface WriteOptions {
  readonly create?: boolean | undefined
  readonly version?: string | undefined
}

/** Returns the version of an existing file: the version of the backend, else the hash of the content. */
const currentVersion = (source: Source, target: Target, stat: Stat): Failing<string> =>
  stat.version === undefined
    ? Effect.map(source.primitives.read(target.real), (content) => versionOf(toBytes(content)))
    : Effect.succeed(stat.version)

/** Writes a content, and gives the version that the file has by it. */
const writeContent = (source: Source, target: Target, content: Content, create: boolean): Failing<string> =>
  Effect.flatMap(source.primitives.write(target.real, content, { create }), (version) => {
    if (typeof version === "string") return Effect.succeed(version)
    return Effect.map(source.primitives.stat(target.real), (stat) => stat?.version ?? versionOf(toBytes(content)))
  })

/** Replaces a file as a whole, or makes it. */
export const writeFile = (
  source: Source,
  target: Target,
  content: Content,
  options: WriteOptions = {}
): Failing<Backend.WriteResult> =>
  Effect.gen(function* () {
    yield* checkContent(source, target, content)
    const stat = yield* source.primitives.stat(target.real)
    if (stat === undefined) {
      if (options.version !== undefined) return yield* fail(target, { _tag: "Conflict" })
      yield* checkWay(source, target)
    } else {
      if (stat.kind === "directory") return yield* fail(target, { _tag: "IsDirectory" })
      if (stat.kind === "link") return yield* fail(target, { _tag: "OutsideRoot" })
      if (options.create === true) return yield* fail(target, { _tag: "AlreadyExists" })
      if (options.version !== undefined && options.version !== (yield* currentVersion(source, target, stat)))
        return yield* fail(target, { _tag: "Conflict" })
    }
    const version = yield* writeContent(source, target, content, options.create === true)
    return { path: target.normal, created: stat === undefined, version }
  }).pipe(source.locks.hold([target.real]))

export const write =
  (source: Source): Backend.Service["write"] =>
  (path, content, options) =>
    on(source, "write", path, (target) => writeFile(source, target, content.toWellFormed(), options))

const encoder = new TextEncoder()

/** The whole text of a file. A text at hand is one, unless its beginning says that it is binary. */
const textOf = (target: Target, content: Content): Result.Result<DecodedText, BackendError["reason"]> => {
  if (typeof content !== "string") return decodeFile(target.normal, content)
  const head = new Uint8Array(sniffLength)
  const { written } = encoder.encodeInto(content, head)
  const isBinary = head.subarray(0, written).includes(0)
  return isBinary ? decodeFile(target.normal, head.subarray(0, written)) : Result.succeed({ text: content })
}

/** The new content of a file, in the encoding that it had. */
const encodeEdited = (target: Target, text: string, encoding: Encoding | undefined): Failing<Content> => {
  if (encoding === undefined) return Effect.succeed(text.toWellFormed())
  const encoded = encodeFile(text, encoding)
  return Result.isSuccess(encoded)
    ? Effect.succeed(encoded.success)
    : fail(target, { _tag: "Unsupported" }, encoded.failure)
}

export const edit =
  (source: Source): Backend.Service["edit"] =>
  (path, replacements, options) =>
    on(source, "edit", path, (target) =>
      Effect.gen(function* () {
        const stat = yield* findFile(source, target)
        yield* checkSize(source, target, stat.size ?? 0)
        const content = yield* source.primitives.read(target.real)
        if (options?.version !== undefined && options.version !== versionFor(stat, content))
          return yield* fail(target, { _tag: "Conflict" })
        const before = textOf(target, content)
        if (Result.isFailure(before)) return yield* fail(target, before.failure)
        const edited = applyEdits(before.success.text, replacements)
        if (Result.isFailure(edited)) return yield* fail(target, edited.failure)
        const { isInexact = false, lines, replaced } = edited.success
        const text = yield* encodeEdited(target, edited.success.text, before.success.encoding)
        yield* checkContent(source, target, text)
        const version = yield* writeContent(source, target, text, false)
        return { path: target.normal, replaced, lines, version, ...(isInexact ? { isInexact } : {}) }
      }).pipe(source.locks.hold([target.real]))
    )
