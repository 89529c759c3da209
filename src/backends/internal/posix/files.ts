/** The operations on files by way of a remote shell. Each is one round trip, or two where contents are large. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { defined } from "../../../support/json/defined.ts"
import { isBinary, mimeTypeOf, sniffLength } from "../files/mime.ts"
import * as Path from "../files/path.ts"
import { applyEdits } from "../text/edit.ts"
import { decodeFile, decodeOther, encodeFile } from "../text/encoding.ts"
import { boundsOf, windowOf } from "../text/lines.ts"
import { listingOf } from "./listing.ts"
import { portionsOf, type Subject } from "./remote.ts"
import * as Scripts from "./scripts.ts"
import { checkAnswer } from "./shell.ts"
import * as Transfer from "./transfer.ts"
import type { Source } from "./transfer.ts"

export type { Source } from "./transfer.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** Runs an operation with the normal form of its path. */
export const on = <A>(
  operation: string,
  inputPath: string,
  run: (path: string, subject: Subject) => Failing<A>
): Failing<A> =>
  Effect.suspend(() => {
    const path = Path.normalize(operation, inputPath)
    return Result.isFailure(path) ? Effect.fail(path.failure) : run(path.success, { operation, path: inputPath })
  })

/** Names a reason as the failure of an operation. */
const failing = (subject: Subject, reason: BackendError.Reason, detail?: string): Failing<never> =>
  Effect.fail(BackendError.make(subject.operation, subject.path, reason, { detail }))

/** A file of at most this many bytes comes as a whole, and its window is made here. */
const wholeSize = 64 * 1024

/** A part larger than a window, so that a cut is detected. */
const partSize = 256 * 1024 + 64

/** Lines are counted from 1; more than these no file has that a shell could count. */
const lastLine = 1_000_000_000

/** A window has fewer lines than this, since each has a byte at least. */
const mostLines = 300_000

/** The number of times an edit is made again that was overtaken by another one. */
const attempts = 20

const encoder = new TextEncoder()

/** The text of bytes that were cut out of a file: halves of characters at both ends are left out. */
const decodePart = (bytes: Uint8Array): string => {
  const first = bytes.findIndex((byte) => (byte & 0xc0) !== 0x80)
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(Math.max(0, first)), { stream: true })
}

/** Decodes bytes cut out of a file, without partial characters at both ends. */
const padding = `${" ".repeat(sniffLength - 1)}\n`

/** A line as long as the sniffed beginning, so that a part of a text never looks binary. */
const windowOfPart = (part: string, window: Backend.Window | undefined, total: number, missing: number) => {
  const { column, limit, offset } = boundsOf(window)
  const excerpt = windowOf(padding + part, { offset: 2, limit })
  if (excerpt.kind === "binary") return undefined
  const { nextColumn, text } = excerpt.window
  const lines = excerpt.window.endLine - excerpt.window.startLine + 1
  return defined({
    text,
    startLine: offset,
    endLine: offset + (offset > total ? 0 : lines) - 1,
    totalLines: total,
    nextColumn: nextColumn === undefined ? undefined : nextColumn + column - missing
  })
}

/** The whole of a large file that may be a text in another encoding than UTF-8, else its beginning. */
const wholeOfOther = (source: Source, inputPath: string, path: string, head: Uint8Array): Failing<Uint8Array> =>
  decodeOther(path, head) === undefined
    ? Effect.succeed(head)
    : Effect.map(Transfer.get(source, "read", inputPath, path), ({ bytes }) => bytes)

const read =
  (source: Source): Backend.Service["read"] =>
  (inputPath, window) =>
    on("read", inputPath, (path, subject) =>
      Effect.gen(function* () {
        const bounds = boundsOf(window)
        const args = [
          Math.min(bounds.offset, lastLine),
          Math.min(bounds.limit, mostLines),
          Math.min(bounds.column, Number.MAX_SAFE_INTEGER),
          wholeSize,
          partSize
        ]
        const answer = yield* source.remote.run(subject, Scripts.read, [path, ...args.map(String)])
        const records = yield* checkAnswer("read", inputPath, answer)
        const size = records.number()
        const version = records.text()
        const whole = size <= wholeSize
        const head = whole ? records.rest() : records.take(sniffLength)
        if (isBinary(head, { complete: whole })) {
          const bytes = whole || size > source.maxFileSize ? head : yield* wholeOfOther(source, inputPath, path, head)
          const other = bytes.length === size ? decodeOther(path, bytes) : undefined
          const excerpt = other === undefined ? undefined : windowOf(other.text, window)
          return excerpt?.kind === "text"
            ? ({ kind: "text", path, ...excerpt.window, size, version } as const)
            : ({ kind: "binary", path, mimeType: mimeTypeOf(path, head), size, version } as const)
        }
        if (whole) {
          const excerpt = windowOf(head, window)
          if (excerpt.kind === "text") {
            return { kind: "text", path, ...excerpt.window, size, version } as const
          }
        }
        const total = records.number()
        const missing = records.number()
        const text = windowOfPart(decodePart(records.rest()), window, total, missing)
        if (text === undefined || !Number.isSafeInteger(total) || !Number.isSafeInteger(missing)) {
          return yield* failing(subject, { _tag: "Unavailable" })
        }
        return { kind: "text", path, ...text, size, version } as const
      })
    )

/** Resolves paths. A missing path resolves to itself. */
const realPaths =
  ({ remote }: Source): NonNullable<Backend.Service["realPaths"]> =>
  (inputPaths) =>
    Effect.gen(function* () {
      const normal = inputPaths.map((path) => Path.normalize("realPaths", path))
      const validPaths = normal.flatMap((path) => (Result.isSuccess(path) ? [path.success] : []))
      const targets = new Map<string, string | undefined>()
      for (const portion of portionsOf(validPaths, (path) => 4 * path.length + 8)) {
        const subject = { operation: "realPaths", path: portion[0] ?? "/" }
        const records = yield* checkAnswer(
          subject.operation,
          subject.path,
          yield* remote.run(subject, Scripts.real, portion)
        )
        for (const path of portion) {
          const answer = records.text()
          if (answer.startsWith("=")) targets.set(path, answer === "=" ? "/" : answer.slice(1))
          else targets.set(path, answer === "NotFound" || answer === "NotDirectory" ? path : undefined)
        }
      }
      return normal.map((path) => (Result.isSuccess(path) ? targets.get(path.success) : undefined))
    })

const ls =
  ({ remote }: Source): Backend.Service["ls"] =>
  (inputPath) =>
    on("ls", inputPath, (path, subject) =>
      Effect.gen(function* () {
        const records = yield* checkAnswer("ls", inputPath, yield* remote.run(subject, Scripts.list, [path]))
        return listingOf(path, records)
      })
    )

const noRoot = (subject: Subject, what: string): Failing<never> =>
  failing(subject, { _tag: "InvalidPath", problem: `the root can't be ${what}` })

/** Operations that change one file, one at a time on each path. */
const changing = (source: Source) => {
  const write: Backend.Service["write"] = (inputPath, content, options) =>
    on("write", inputPath, (path, subject) => {
      if (path === "/") return failing(subject, { _tag: "IsDirectory" })
      const bytes = encoder.encode(content)
      const mode = options?.create === true ? "create" : "write"
      return Effect.gen(function* () {
        yield* Transfer.checkSize(source, subject, bytes.length)
        const file = { path, inputPath, mode, version: options?.version, bytes } as const
        return { path, ...(yield* Transfer.placeContent(source, "write", file)) }
      }).pipe(source.locks.hold([path]))
    })

  const editOnce = (
    inputPath: string,
    path: string,
    subject: Subject,
    replacements: ReadonlyArray<Backend.Replacement>,
    expected: string | undefined
  ): Failing<Backend.EditResult> =>
    Effect.gen(function* () {
      const { bytes: before, version } = yield* Transfer.get(source, "edit", inputPath, path)
      if (expected !== undefined && expected !== version) return yield* failing(subject, { _tag: "Conflict" })
      const text = decodeFile(path, before)
      if (Result.isFailure(text)) return yield* failing(subject, text.failure)
      const edited = applyEdits(text.success.text, replacements)
      if (Result.isFailure(edited)) return yield* failing(subject, edited.failure)
      const encoded = encodeFile(edited.success.text, text.success.encoding)
      if (Result.isFailure(encoded)) return yield* failing(subject, { _tag: "Unsupported" }, encoded.failure)
      const bytes = encoded.success
      yield* Transfer.checkSize(source, subject, bytes.length)
      const placed = yield* Transfer.placeContent(source, "edit", { path, inputPath, mode: "edit", version, bytes })
      const { isInexact = false, lines, replaced } = edited.success
      return { path, replaced, lines, version: placed.version, ...(isInexact ? { isInexact } : {}) }
    })

  const edit: Backend.Service["edit"] = (inputPath, replacements, options) =>
    on("edit", inputPath, (path, subject) => {
      if (path === "/") return failing(subject, { _tag: "IsDirectory" })
      const expected = options?.version
      const isOvertaken = (error: BackendError.BackendError) =>
        expected === undefined && error.reason._tag === "Conflict"
      return editOnce(inputPath, path, subject, replacements, expected).pipe(
        // Another name of the file was edited first: the edit is repeated on the new content.
        Effect.retry({ times: attempts, while: isOvertaken }),
        source.locks.hold([path])
      )
    })

  const remove: Backend.Service["delete"] = (inputPath, options) =>
    on("delete", inputPath, (path, subject) =>
      path === "/"
        ? noRoot(subject, "deleted")
        : source.remote.run(subject, Scripts.remove, [path, options?.recursive === true ? "1" : ""]).pipe(
            Effect.flatMap((answer) => checkAnswer("delete", inputPath, answer)),
            Effect.asVoid,
            source.locks.hold([path])
          )
    )

  const move: Backend.Service["move"] = (givenFrom, givenTo) =>
    on("move", givenFrom, (from, subject) =>
      on("move", givenTo, (to) => {
        if (from === "/") return noRoot(subject, "moved")
        if (to === "/") return failing({ operation: "move", path: givenTo }, { _tag: "AlreadyExists" })
        if (Path.isWithin(to, from)) {
          return failing(subject, { _tag: "InvalidPath", problem: "it can't be moved onto or into itself" })
        }
        return source.commits
          .withPermits(1)(source.remote.run(subject, Scripts.move, [from, to]))
          .pipe(
            Effect.flatMap((answer) => checkAnswer("move", givenFrom, answer)),
            Effect.asVoid,
            source.locks.hold([from, to])
          )
      })
    )

  return { write, edit, delete: remove, move }
}

/** All operations but the searches. */
export const make = (source: Source): Omit<Backend.Service, "grep" | "glob"> => ({
  ls: ls(source),
  realPaths: realPaths(source),
  read: read(source),
  ...changing(source),
  upload: Transfer.upload(source),
  download: Transfer.download(source)
})
