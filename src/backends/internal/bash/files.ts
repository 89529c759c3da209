/** The files of a command line: performs its requests through the backend and its rules. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"
import * as Path from "../files/path.ts"
import type { Fault } from "./errors.ts"
import { faultOf } from "./faults.ts"
import type { Call, Reply } from "./messages.ts"
import { fail, isDevice, make as makeView, type Node, type View } from "./view.ts"

type Failing<A> = Effect.Effect<A, Fault>

/** The most times that a file that others write too is read again, to append to it. */
const attempts = 5

/** The most files of one copy. */
const mostFiles = 100_000

const normal = (call: string, path: string): Failing<string> => {
  const checked = Path.normalize(call, path)
  return Result.isSuccess(checked) ? Effect.succeed(checked.success) : Effect.fail(faultOf(call, path)(checked.failure))
}

const nothing = new Uint8Array()

const operations = (backend: Backend.Service, view: View, modes: Map<string, number>) => {
  /** Files that were written by this line. */
  const writtenPaths = new Set<string>()

  const readFile = (path: string): Failing<Uint8Array> => {
    if (isDevice(path)) return Effect.succeed(nothing)
    return Effect.flatMap(backend.download([path]), ([got]) => {
      if (got?.ok === true) return Effect.succeed(got.value)
      const fault = got === undefined ? undefined : faultOf("open", path)(got.error)
      // The backend does not know directories that a command made.
      return fault?.code === "ENOENT"
        ? Effect.flatMap(view.find("open", path), (node) =>
            fail(node?.kind === "directory" ? "EISDIR" : "ENOENT", "open", path)
          )
        : Effect.fail(fault ?? { code: "EIO", call: "open", path })
    })
  }

  const write = (path: string, content: Uint8Array): Failing<void> =>
    Effect.gen(function* () {
      if (isDevice(path)) return
      if ((yield* view.find("open", path))?.kind === "directory") return yield* fail("EISDIR", "open", path)
      const above = yield* view.find("open", Path.parent(path))
      if (above === undefined) return yield* fail("ENOENT", "open", path)
      if (above.kind !== "directory") return yield* fail("ENOTDIR", "open", path)
      const [outcome] = yield* backend.upload([{ path, content }])
      if (outcome?.ok !== true) {
        return yield* Effect.fail(
          outcome === undefined ? ({ code: "EIO", call: "open", path } as const) : faultOf("open", path)(outcome.error)
        )
      }
      writtenPaths.add(path)
      view.changed(path)
    })

  const replaced = (path: string, added: Uint8Array, left: number): Failing<void> =>
    Effect.gen(function* () {
      const file = yield* Effect.mapError(backend.read(path, { limit: 0 }), faultOf("open", path))
      const before = yield* readFile(path)
      const bytes = joinBytes([before, added])
      const text = Result.try(() => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))
      if (Result.isFailure(text)) return yield* write(path, bytes)
      const result = yield* Effect.result(backend.write(path, text.success, { version: file.version }))
      if (Result.isSuccess(result)) {
        writtenPaths.add(path)
        return view.changed(path)
      }
      return yield* result.failure.reason._tag === "Conflict" && left > 0
        ? replaced(path, added, left - 1)
        : Effect.fail(faultOf("open", path)(result.failure))
    })

  const append = (path: string, added: Uint8Array): Failing<void> => {
    if (isDevice(path)) return Effect.void
    return Effect.flatMap(view.find("open", path), (node) => {
      if (node === undefined) return write(path, added)
      if (node.kind === "directory") return fail("EISDIR", "open", path)
      return added.length === 0 ? Effect.void : replaced(path, added, attempts)
    })
  }

  /** A backend checks a write only when it happens, so an existing file is written again. */
  const open = (path: string, adds: boolean): Failing<void> => {
    if (isDevice(path)) return Effect.void
    if (!adds) return write(path, nothing)
    return Effect.flatMap(view.find("open", path), (node) => {
      if (node === undefined) return write(path, nothing)
      if (node.kind === "directory") return fail("EISDIR", "open", path)
      return writtenPaths.has(path) ? Effect.void : replaced(path, nothing, attempts)
    })
  }

  const makeDirectory = (path: string, recursive: boolean): Failing<void> =>
    Effect.gen(function* () {
      const node = yield* view.find("mkdir", path)
      if (node?.kind === "directory" && recursive) return
      if (node !== undefined) return yield* fail("EEXIST", "mkdir", path)
      for (let above = Path.parent(path); ; above = Path.parent(above)) {
        const parent = yield* view.find("mkdir", above)
        if (parent !== undefined && parent.kind !== "directory") return yield* fail("ENOTDIR", "mkdir", path)
        if (parent !== undefined) break
        if (!recursive) return yield* fail("ENOENT", "mkdir", path)
      }
      view.makeDirectory(path)
    })

  const remove = (path: string, recursive: boolean, force: boolean): Failing<void> =>
    Effect.gen(function* () {
      const node = yield* view.find("rm", path)
      if (node === undefined) return force ? undefined : yield* fail("ENOENT", "rm", path)
      if (path === "/" || isDevice(path)) return yield* fail("EPERM", "rm", path)
      const isDirectory = node.kind === "directory" && !node.isLink
      if (isDirectory && !recursive && (yield* view.names("rm", path)).size > 0)
        return yield* fail("ENOTEMPTY", "rm", path)
      yield* backend.delete(path, { recursive: recursive && isDirectory }).pipe(
        Effect.catchReason("BackendError", "NotFound", (_, error) => (isDirectory ? Effect.void : Effect.fail(error))),
        Effect.mapError(faultOf("rm", path))
      )
      modes.delete(path)
      writtenPaths.delete(path)
      view.forget(path)
      view.changed(path)
    })

  const move = (from: string, to: string): Failing<void> =>
    Effect.gen(function* () {
      const source = yield* view.stat("rename", from)
      const target = yield* view.find("rename", to)
      if (source.kind !== "directory" && target?.kind === "file") {
        // A backend never moves onto a file: the content goes there first, so that it is not lost on the way.
        yield* write(to, yield* readFile(from))
        return yield* remove(from, false, false)
      }
      if (target !== undefined && (yield* view.names("rename", to)).size > 0)
        return yield* fail("ENOTEMPTY", "rename", to)
      if (Path.isWithin(to, from)) return yield* fail("EINVAL", "rename", to)
      view.forget(to)
      yield* backend.move(from, to).pipe(
        Effect.catchReason("BackendError", "NotFound", (_, error) =>
          source.kind === "directory" ? Effect.void : Effect.fail(error)
        ),
        Effect.mapError(faultOf("rename", from))
      )
      for (const one of view.forget(from)) view.makeDirectory(Path.join(to, Path.relative(one, from)))
      view.changed(from)
      view.changed(to)
    })

  const copy = (from: string, to: string, recursive: boolean): Failing<void> =>
    Effect.gen(function* () {
      const source = yield* view.stat("cp", from)
      if (source.kind !== "directory") return yield* write(to, yield* readFile(from))
      if (!recursive) return yield* fail("EISDIR", "cp", from)
      if (Path.isWithin(to, from)) return yield* fail("EINVAL", "cp", to)
      const query = { pattern: "**", path: from, ignored: true, limit: mostFiles }
      const listing = yield* backend.glob(query).pipe(
        Effect.catchReason("BackendError", "NotFound", () => Effect.succeed<Backend.Listing>({ entries: [] })),
        Effect.mapError(faultOf("cp", from))
      )
      if (listing.truncated !== undefined) return yield* fail("EFBIG", "cp", from)
      view.makeDirectory(to)
      for (const { path } of listing.entries) {
        const place = Path.join(to, Path.relative(path, from))
        view.makeDirectory(Path.parent(place))
        yield* write(place, yield* readFile(path))
      }
    })

  return { read: readFile, write, append, open, makeDirectory, remove, move, copy }
}

/** The files for one command line. */
export interface Files {
  /** Performs a request. */
  readonly answer: (call: Call) => Failing<Reply>
  readonly hasPrograms: Effect.Effect<boolean>
}

const emptyReply: Reply = {}

/**
 * The files of one command line. `modes` outlive it: backends have no modes, and an executable file should stay
 * executable.
 */
export const make = (backend: Backend.Service, modes: Map<string, number>): Files => {
  const view = makeView(backend)
  const run = operations(backend, view, modes)

  const statusOf = (path: string, { kind, modifiedAt, size }: Node, identity: string): Reply => ({
    status: { kind, size, modifiedAt, identity, mode: modes.get(path) ?? (kind === "directory" ? 0o755 : 0o644) }
  })

  const status = (call: "stat" | "lstat", path: string): Failing<Reply> =>
    Effect.flatMap(view.stat(call, path), (node) => {
      if (call === "lstat" && node.isLink) return Effect.succeed(statusOf(path, { ...node, kind: "link" }, path))
      if (node.kind === "link") return fail("ENOENT", call, path)
      // Only a directory is entered, and so may be met again by another way.
      return node.kind === "directory"
        ? Effect.map(view.real(call, path), (real = path) => statusOf(path, node, real))
        : Effect.succeed(statusOf(path, node, path))
    })

  const names = (path: string): Failing<Reply> =>
    Effect.map(view.names("scandir", path), (entries) => ({
      names: Array.from(entries, ([name, kind]) => ({ name, kind })).sort((left, right) =>
        left.name < right.name ? -1 : 1
      )
    }))

  const answerAt = (call: Call, path: string): Failing<Reply> => {
    switch (call.op) {
      case "read":
        return Effect.map(run.read(path), (bytes) => ({ bytes }))
      case "write":
        return Effect.as(run.write(path, call.content), emptyReply)
      case "append":
        return Effect.as(run.append(path, call.content), emptyReply)
      case "open":
        return Effect.as(run.open(path, call.append), emptyReply)
      case "stat":
      case "lstat":
        return status(call.op, path)
      case "exists":
        return view.find("stat", path).pipe(
          Effect.map((node) => ({ exists: node !== undefined && node.kind !== "link" })),
          Effect.catch(() => Effect.succeed({ exists: false }))
        )
      case "list":
        return names(path)
      case "mkdir":
        return Effect.as(run.makeDirectory(path, call.recursive), emptyReply)
      case "remove":
        return Effect.as(run.remove(path, call.recursive, call.force), emptyReply)
      case "copy":
        return Effect.flatMap(normal("cp", call.to), (to) => Effect.as(run.copy(path, to, call.recursive), emptyReply))
      case "move":
        return Effect.flatMap(normal("rename", call.to), (to) => Effect.as(run.move(path, to), emptyReply))
      case "chmod":
        return Effect.map(view.stat("chmod", path), () => {
          modes.set(path, call.mode & 0o777)
          return emptyReply
        })
      case "readlink":
        return Effect.flatMap(view.stat("readlink", path), ({ isLink }) =>
          isLink ? resolvePath("readlink", path) : fail("EINVAL", "readlink", path)
        )
      case "realpath":
        return Effect.andThen(view.stat("realpath", path), resolvePath("realpath", path))
    }
  }

  const resolvePath = (call: string, path: string): Failing<Reply> =>
    Effect.flatMap(view.real(call, path), (real) =>
      real === undefined ? fail("EACCES", call, path) : Effect.succeed({ path: real })
    )

  return {
    answer: (call) => Effect.flatMap(normal(call.op, call.path), (path) => answerAt(call, path)),
    hasPrograms: view.hasPrograms
  }
}
