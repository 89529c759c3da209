/**
 * The system calls that the file system backend is made of, as effects.
 *
 * None of them can be interrupted while it is under way: a descriptor must not be closed (and its number given to
 * another file) as long as a call uses it. Calls that look at names and descriptors run at once: it takes microseconds,
 * and ten times as many by way of node's threads. Calls that read, write and list go by way of them.
 */
import { isUtf8 } from "node:buffer"
import * as NodeFs from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as SqliteFiles from "../../../support/store/sqliteFiles.ts"
import { type Fault, fault, fromSystem } from "./failure.ts"

export type Stats = NodeFs.BigIntStats

/** A path of the machine. Most are text; names that are not are kept as they are. */
export type RealPath = string | Buffer

/** Deno says `undefined` where node says `null`. */
type Callback<A> = (error: NodeJS.ErrnoException | null | undefined, value: A) => void

const call = <A>(start: (done: Callback<A>) => void): Effect.Effect<A, Fault> =>
  Effect.uninterruptible(
    Effect.callback<A, Fault>((resume) => {
      start((error, value) => {
        resume(error ? Effect.fail(fromSystem(error)) : Effect.succeed(value))
      })
    })
  )

const command = (start: (done: (error?: NodeJS.ErrnoException | null) => void) => void): Effect.Effect<void, Fault> =>
  call<void>((done) => {
    start((error) => {
      done(error, undefined)
    })
  })

/** Runs a synchronous call. */
export const attempt = <A>(run: () => A): Result.Result<A, NodeJS.ErrnoException> =>
  // The system's errors are all of this kind.
  Result.try({ try: run, catch: (cause) => cause as NodeJS.ErrnoException })

const runNow = <A>(run: () => A): Effect.Effect<A, Fault> =>
  Effect.suspend(() => {
    const result = attempt(run)
    return Result.isSuccess(result) ? Effect.succeed(result.success) : Effect.fail(fromSystem(result.failure))
  })

/** The entry at a path; `undefined` if it is missing. Avoids the cost of an error for this common case. */
export const lstatNow = (path: RealPath): Stats | undefined =>
  NodeFs.lstatSync(path, { bigint: true, throwIfNoEntry: false })

/** True if SQLite has the file open in this process, which must not open it again. */
export const isOpenDatabase = (path: RealPath): boolean => {
  if (!SqliteFiles.hasOpen()) return false
  const stats = Result.getOrUndefined(attempt(() => lstatNow(path)))
  return stats !== undefined && SqliteFiles.isOpen(stats)
}

const missing = fault({ _tag: "NotFound" })

export const lstat = (path: RealPath): Effect.Effect<Stats, Fault> =>
  Effect.flatMap(
    runNow(() => lstatNow(path)),
    (stats) => (stats === undefined ? Effect.fail(missing) : Effect.succeed(stats))
  )
export const stat = (path: RealPath) => call<Stats>((done) => NodeFs.stat(path, { bigint: true }, done))
export const fstat = (fd: number): Effect.Effect<Stats, Fault> => runNow(() => NodeFs.fstatSync(fd, { bigint: true }))
export const readlink = (path: RealPath): Effect.Effect<string, Fault> => runNow(() => NodeFs.readlinkSync(path))
export const realpath = (path: RealPath) => call<string>((done) => NodeFs.realpath.native(path, done))
export const accessTo = (mode: "write" | "run", path: RealPath) =>
  command((done) => NodeFs.access(path, mode === "write" ? NodeFs.constants.W_OK : NodeFs.constants.X_OK, done))

export const open = (path: RealPath, flags: number, mode = 0o666): Effect.Effect<number, Fault> =>
  runNow(() => NodeFs.openSync(path, flags, mode))
/** Closes a written file, and reports delayed write errors. The descriptor is closed in any case. */
export const closeWritten = (fd: number) => command((done) => NodeFs.close(fd, done))
/** Closes a file that was only read. */
export const close = (fd: number): Effect.Effect<void> => Effect.ignore(runNow(() => NodeFs.closeSync(fd)))
/**
 * Says that a file was changed now, to the microsecond. The clock of a file system may stand still for milliseconds, in
 * which two changes have the same time.
 */
export const touch = (fd: number): Effect.Effect<void, Fault> =>
  runNow(() => {
    const seconds = Date.now() / 1000 + Number(process.hrtime.bigint() % 1_000_000n) / 1e9
    NodeFs.futimesSync(fd, seconds, seconds)
  })
export const fdatasync = (fd: number) => command((done) => NodeFs.fdatasync(fd, done))
export const fchmod = (fd: number, mode: number) => command((done) => NodeFs.fchmod(fd, mode, done))
export const fchown = (fd: number, uid: number, gid: number) => command((done) => NodeFs.fchown(fd, uid, gid, done))

/** The bytes of one read. Most files have no more. */
const readAtOnce = 64 * 1024

export const readBytes = (fd: number, into: Uint8Array, position: number): Effect.Effect<number, Fault> =>
  into.byteLength <= readAtOnce
    ? runNow(() => NodeFs.readSync(fd, into, 0, into.byteLength, position))
    : call<number>((done) => NodeFs.read(fd, into, 0, into.byteLength, position, done))
const writeSome = (fd: number, bytes: Uint8Array) =>
  call<number>((done) => NodeFs.write(fd, bytes, 0, bytes.byteLength, null, done))

/** Writes all of the bytes at the current position. */
export const write = Effect.fnUntraced(function* (fd: number, bytes: Uint8Array) {
  let rest = bytes
  while (rest.byteLength > 0) rest = rest.subarray(yield* writeSome(fd, rest))
})

export const mkdir = (path: RealPath) => command((done) => NodeFs.mkdir(path, done))
export const rename = (from: RealPath, to: RealPath) => command((done) => NodeFs.rename(from, to, done))
export const link = (from: RealPath, to: RealPath) => command((done) => NodeFs.link(from, to, done))
export const unlink = (path: RealPath) => command((done) => NodeFs.unlink(path, done))
export const rmdir = (path: RealPath) => command((done) => NodeFs.rmdir(path, done))

/** Lists a directory, in no order. Names are bytes: not every one is text. */
export type Dirents = ReadonlyArray<NodeFs.Dirent<Buffer>>

export const readdir = (path: RealPath) =>
  call<Dirents>((done) => NodeFs.readdir(path, { withFileTypes: true, encoding: "buffer" }, done))

/** A name in a directory and its kind. Anything but a file or a directory is a `link`. */
export interface Entry {
  readonly name: string
  readonly kind: "file" | "directory" | "link"
}

const entryOf = (name: string, dirent: NodeFs.Dirent<string | Buffer>): Entry => ({
  name,
  kind: dirent.isDirectory() ? "directory" : dirent.isFile() ? "file" : "link"
})

/** Lists a directory in no order, without names that are not text. */
export const listNow = (path: RealPath, done: Callback<ReadonlyArray<Entry>>): void => {
  NodeFs.readdir(path, { withFileTypes: true }, (failed, dirents) => {
    if (failed) return done(failed, [])
    // Only the stand-ins for bytes that are no text may be wrong; to ask for bytes at once takes half as long again.
    if (!dirents.some(({ name }) => name.includes("\uFFFD"))) {
      return done(
        null,
        dirents.map((dirent) => entryOf(dirent.name, dirent))
      )
    }
    NodeFs.readdir(path, { withFileTypes: true, encoding: "buffer" }, (error, exact) => {
      const texts = (exact ?? []).filter(({ name }) => isUtf8(name))
      done(
        error,
        texts.map((dirent) => entryOf(dirent.name.toString(), dirent))
      )
    })
  })
}

export const list = (path: RealPath) => call<ReadonlyArray<Entry>>((done) => listNow(path, done))

/** The version of the file's content: changes with each change, as exactly as the file system keeps time. */
export const versionOf = (stats: Stats): string =>
  [stats.mtimeNs, stats.ctimeNs, stats.size, stats.ino].map((part) => part.toString(36)).join("-")

/** Waits in real time, independent of the fiber's clock, for the system or another process. */
export const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })
