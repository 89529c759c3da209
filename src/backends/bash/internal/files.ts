/**
 * The file system that just-bash works on, made from a backend: each access goes through the backend, with its rules.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { IFileSystem } from "just-bash"
import type * as Backend from "../../../core/Backend.ts"
import * as Path from "../../internal/path.ts"
import type { Ask } from "./bridge.ts"
import { decode, encode } from "./encoding.ts"
import { type Fault, faultOf, toError } from "./errors.ts"
import { fail, isDevice, make as makeView, type Node, type View } from "./view.ts"

type Failing<A> = Effect.Effect<A, Fault>

/** How often a file that others write too is read again, to append to it. */
const attempts = 5

/** More files than these are not copied at once. */
const mostFiles = 100_000

const normal = (call: string, path: string): Failing<string> => {
  const checked = Path.normalize(call, path)
  return Result.isSuccess(checked) ? Effect.succeed(checked.success) : Effect.fail(faultOf(call, path)(checked.failure))
}

const operations = (backend: Backend.Service, view: View, modes: Map<string, number>) => {
  const read = (path: string): Failing<Uint8Array> => {
    if (isDevice(path)) return Effect.succeed(new Uint8Array())
    return Effect.flatMap(backend.download([path]), ([got]) => {
      if (got?.ok === true) return Effect.succeed(got.value)
      const fault = got === undefined ? undefined : faultOf("open", path)(got.error)
      // A directory that a command made is none for the backend.
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
      const [written] = yield* backend.upload([{ path, content }])
      if (written?.ok !== true) {
        return yield* Effect.fail(
          written === undefined ? ({ code: "EIO", call: "open", path } as const) : faultOf("open", path)(written.error)
        )
      }
      view.changed(path)
    })

  const replaced = (path: string, added: Uint8Array, left: number): Failing<void> =>
    Effect.gen(function* () {
      const file = yield* Effect.mapError(backend.read(path, { limit: 0 }), faultOf("open", path))
      const before = yield* read(path)
      const bytes = new Uint8Array(before.length + added.length)
      bytes.set(before)
      bytes.set(added, before.length)
      const text = Result.try(() => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))
      if (Result.isFailure(text)) return yield* write(path, bytes)
      const done = yield* Effect.result(backend.write(path, text.success, { version: file.version }))
      if (Result.isSuccess(done)) return view.changed(path)
      return yield* done.failure.reason._tag === "Conflict" && left > 0
        ? replaced(path, added, left - 1)
        : Effect.fail(faultOf("open", path)(done.failure))
    })

  const append = (path: string, added: Uint8Array): Failing<void> => {
    if (isDevice(path)) return Effect.void
    return Effect.flatMap(view.find("open", path), (node) => {
      if (node === undefined) return write(path, added)
      if (node.kind === "directory") return fail("EISDIR", "open", path)
      return added.length === 0 ? Effect.void : replaced(path, added, attempts)
    })
  }

  const makeDirectory = (path: string, recursive: boolean): Failing<void> =>
    Effect.gen(function* () {
      const node = yield* view.find("mkdir", path)
      if (node?.kind === "directory" && recursive) return
      if (node !== undefined) return yield* fail("EEXIST", "mkdir", path)
      for (let above = Path.parent(path); ; above = Path.parent(above)) {
        const found = yield* view.find("mkdir", above)
        if (found !== undefined && found.kind !== "directory") return yield* fail("ENOTDIR", "mkdir", path)
        if (found !== undefined) break
        if (!recursive) return yield* fail("ENOENT", "mkdir", path)
      }
      view.makeDirectory(path)
    })

  const remove = (path: string, recursive: boolean, force: boolean): Failing<void> =>
    Effect.gen(function* () {
      const node = yield* view.find("rm", path)
      if (node === undefined) return force ? undefined : yield* fail("ENOENT", "rm", path)
      if (path === "/" || isDevice(path)) return yield* fail("EPERM", "rm", path)
      const isDirectory = node.kind === "directory"
      if (isDirectory && !recursive && (yield* view.names("rm", path)).size > 0)
        return yield* fail("ENOTEMPTY", "rm", path)
      yield* backend.delete(path, { recursive: recursive && isDirectory }).pipe(
        Effect.catchReason("BackendError", "NotFound", (_, error) => (isDirectory ? Effect.void : Effect.fail(error))),
        Effect.mapError(faultOf("rm", path))
      )
      modes.delete(path)
      view.forget(path)
      view.changed(path)
    })

  const move = (from: string, to: string): Failing<void> =>
    Effect.gen(function* () {
      const source = yield* view.stat("rename", from)
      const target = yield* view.find("rename", to)
      if (source.kind !== "directory" && target?.kind === "file") {
        // A backend never moves onto a file: the content goes there first, so that it is not lost on the way.
        yield* write(to, yield* read(from))
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
      if (source.kind !== "directory") return yield* write(to, yield* read(from))
      if (!recursive) return yield* fail("EISDIR", "cp", from)
      if (Path.isWithin(to, from)) return yield* fail("EINVAL", "cp", to)
      const query = { pattern: "**", path: from, ignored: true, limit: mostFiles }
      const found = yield* backend.glob(query).pipe(
        Effect.catchReason("BackendError", "NotFound", () => Effect.succeed<Backend.Listing>({ entries: [] })),
        Effect.mapError(faultOf("cp", from))
      )
      if (found.truncated !== undefined) return yield* fail("EFBIG", "cp", from)
      view.makeDirectory(to)
      for (const { path } of found.entries) {
        const place = Path.join(to, Path.relative(path, from))
        view.makeDirectory(Path.parent(place))
        yield* write(place, yield* read(path))
      }
    })

  return { read, write, append, makeDirectory, remove, move, copy }
}

const statOf = (path: string, node: Node, mode: number | undefined) => ({
  // A path is one file: there are no links.
  identity: path,
  isFile: node.kind === "file",
  isDirectory: node.kind === "directory",
  isSymbolicLink: node.kind === "link",
  mode: mode ?? (node.kind === "directory" ? 0o755 : 0o644),
  size: node.size,
  mtime: new Date(node.modifiedAt)
})

/**
 * The file system for one command. `modes` are kept longer: a backend has none, and what was made executable should
 * still be so for the next command.
 */
export const make = (backend: Backend.Service, modes: Map<string, number>, ask: Ask): Effect.Effect<IFileSystem> => {
  const view = makeView(backend)
  return Effect.as(view.look, filesOf(backend, view, modes, ask))
}

const filesOf = (backend: Backend.Service, view: View, modes: Map<string, number>, ask: Ask): IFileSystem => {
  const run = operations(backend, view, modes)
  const at = <A>(call: string, path: string, use: (path: string) => Failing<A>): Promise<A> =>
    ask(Effect.flatMap(normal(call, path), use), toError)
  const stat = (call: string) => async (given: string) =>
    view.isAbsent(given)
      ? Promise.reject(toError({ code: "ENOENT", call, path: given }))
      : at(call, given, (path) => Effect.map(view.stat(call, path), (node) => statOf(path, node, modes.get(path))))
  const refuse = (call: string) => (_: string, given: string) => at(call, given, (path) => fail("EPERM", call, path))
  return {
    readFile: (given, options) =>
      at("open", given, (path) => Effect.map(run.read(path), (bytes) => decode(bytes, options))),
    readFileBuffer: (given) => at("open", given, run.read),
    writeFile: (given, content, options) => at("open", given, (path) => run.write(path, encode(content, options))),
    appendFile: (given, content, options) => at("open", given, (path) => run.append(path, encode(content, options))),
    exists: async (given) =>
      view.isAbsent(given)
        ? false
        : at("stat", given, (path) =>
            view.find("stat", path).pipe(
              Effect.map((node) => node !== undefined),
              Effect.catch(() => Effect.succeed(false))
            )
          ),
    stat: stat("stat"),
    lstat: stat("lstat"),
    mkdir: (given, options) => at("mkdir", given, (path) => run.makeDirectory(path, options?.recursive === true)),
    readdir: (given) =>
      at("scandir", given, (path) => Effect.map(view.names("scandir", path), (names) => [...names.keys()].sort())),
    readdirWithFileTypes: (given) =>
      at("scandir", given, (path) =>
        Effect.map(view.names("scandir", path), (names) =>
          [...names]
            .sort(([left], [right]) => (left < right ? -1 : 1))
            .map(([name, kind]) => ({
              name,
              isFile: kind === "file",
              isDirectory: kind === "directory",
              isSymbolicLink: kind === "link"
            }))
        )
      ),
    rm: (given, options) =>
      at("rm", given, (path) => run.remove(path, options?.recursive === true, options?.force === true)),
    cp: (from, to, options) =>
      at("cp", from, (source) =>
        Effect.flatMap(normal("cp", to), (target) => run.copy(source, target, options?.recursive === true))
      ),
    mv: (from, to) =>
      at("rename", from, (source) => Effect.flatMap(normal("rename", to), (target) => run.move(source, target))),
    resolvePath,
    getAllPaths: () => [],
    chmod: (given, mode) =>
      at("chmod", given, (path) => Effect.map(view.stat("chmod", path), () => void modes.set(path, mode & 0o777))),
    symlink: refuse("symlink"),
    link: refuse("link"),
    readlink: (given) =>
      at("readlink", given, (path) =>
        Effect.flatMap(view.stat("readlink", path), () => fail("EINVAL", "readlink", path))
      ),
    realpath: (given) => at("realpath", given, (path) => Effect.as(view.stat("realpath", path), path)),
    utimes: (given) => at("utimes", given, (path) => Effect.asVoid(view.stat("utimes", path)))
  }
}

/** A path from another one on; a shell's `..` ends at the root. */
const resolvePath = (base: string, path: string): string => {
  const names: Array<string> = []
  for (const name of (path.startsWith("/") ? path : `${base}/${path}`).split("/")) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}
