/** A copy of files for a rehearsal: it reads from the backend, and its changes stay in memory. */
import * as Effect from "effect/Effect"
import * as TextDiff from "effect/TextDiff"
import * as CustomBackend from "../../../backends/CustomBackend.ts"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { cut } from "../../../support/text/text.ts"

/** The change of a file, as a diff. */
export interface Change {
  readonly path: string
  readonly diff: string
}

/** The files that a rehearsal has looked at, each with its version; a folder ends with `/`. */
export type SeenFiles = ReadonlyArray<readonly [path: string, version: string]>

export interface Copy {
  /** Makes a backend over the copy. `onUse` is called with each of its accesses. */
  readonly view: (onUse: () => void) => Backend.Service
  readonly changes: Effect.Effect<ReadonlyArray<Change>, BackendError.BackendError>
  readonly seen: () => SeenFiles
}

/** The longest text that is compared, in characters. */
const comparable = 1_000_000

/** The longest diff of one file, in characters. */
const maxDiff = 20_000

/** The version of a file that is not there. */
const missing = ""

const parentOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")))
const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)
const isWithin = (path: string, folder: string): boolean => path.startsWith(folder === "/" ? "/" : `${folder}/`)

const isAbsent = ({ reason }: BackendError.BackendError): boolean =>
  reason._tag === "NotFound" || reason._tag === "NotDirectory"

/** The file at a path; `undefined` if nothing is there, `"directory"` for a directory. */
const look = (base: Backend.Service, path: string) =>
  Effect.catchIf(
    base.read(path, { limit: 0 }),
    (error) => isAbsent(error) || error.reason._tag === "IsDirectory",
    (error) => Effect.succeed(isAbsent(error) ? undefined : ("directory" as const))
  )

const bytesOf = (base: Backend.Service, path: string) =>
  Effect.flatMap(base.download([path]), ([found]) =>
    found === undefined ? Effect.succeed(undefined) : found.ok ? Effect.succeed(found.value) : Effect.fail(found.error)
  )

const listEntries = (base: Backend.Service, path: string) =>
  Effect.catchIf(
    Effect.map(base.ls(path), ({ entries }) => entries),
    isAbsent,
    () => Effect.succeed([])
  )

const versionOf = (entry: Effect.Success<ReturnType<typeof look>>): string =>
  entry === undefined || entry === "directory" ? missing : entry.version

const digestOf = (entries: ReadonlyArray<Backend.Entry>): string =>
  sha256Sync(
    entries
      .map(({ kind, path }) => `${kind} ${path}`)
      .toSorted()
      .join("\n")
  )

const textOf = (content: CustomBackend.Content | undefined): string | undefined => {
  if (content === undefined) return ""
  const text = typeof content === "string" ? content : new TextDecoder().decode(content)
  return text.length > comparable || /[\uFFFD\0]/.test(text) ? undefined : text
}

const diffOf = (before: CustomBackend.Content | undefined, after: CustomBackend.Content | undefined): string => {
  const [left, right] = [textOf(before), textOf(after)]
  if (before === undefined && right === "") return "(a new file, empty)\n"
  if (after === undefined && left === "") return "(deleted, it was empty)\n"
  if (left === undefined || right === undefined) return "(no text, or too long to compare)\n"
  return cut(TextDiff.unified(TextDiff.lines(left, right, { maxEdits: 2_000 })), maxDiff)
}

/** Makes a copy of the files of a backend. The rules of the backend are asked before each change. */
export const make = (base: Backend.Service): Copy => {
  /** The changed files; `undefined` for removed ones. */
  const files = new Map<string, CustomBackend.Content | undefined>()
  const seenVersions = new Map<string, string>()

  const isGone = (path: string): boolean => {
    for (let at = path; at !== "/"; at = parentOf(at)) if (files.has(at)) return files.get(at) === undefined
    return false
  }
  const isMade = (path: string): boolean =>
    [...files].some(([own, content]) => content !== undefined && isWithin(own, path))
  const notice = (path: string, version: string): void => {
    if (!seenVersions.has(path)) seenVersions.set(path, version)
  }
  const below = (path: string) =>
    Effect.tap(look(base, path), (entry) => Effect.sync(() => notice(path, versionOf(entry))))
  const permit = (changes: ReadonlyArray<Backend.PlannedChange>) =>
    base.permit === undefined ? Effect.void : Effect.asVoid(base.permit({ text: "", changes }))
  const notFound = (path: string) => Effect.fail(BackendError.make("read", path, { _tag: "NotFound" }))
  const readWhole = (path: string) => {
    const own = files.get(path)
    if (own !== undefined) return Effect.succeed(own)
    if (isGone(path)) return notFound(path)
    return Effect.flatMap(Effect.andThen(below(path), bytesOf(base, path)), (bytes) =>
      bytes === undefined ? notFound(path) : Effect.succeed(bytes)
    )
  }
  const sizeOf = (content: CustomBackend.Content): number => CustomBackend.toBytes(content).length

  const primitives: CustomBackend.Primitives = {
    stat: Effect.fnUntraced(function* (path) {
      const own = files.get(path)
      if (own !== undefined) return { kind: "file", size: sizeOf(own) }
      if (path === "/" || isMade(path)) return { kind: "directory" }
      if (isGone(path)) return undefined
      const entry = yield* below(path)
      if (entry === undefined) return undefined
      return entry === "directory" ? { kind: "directory" } : { kind: "file", size: entry.size, version: entry.version }
    }),
    list: Effect.fnUntraced(function* (path) {
      const entries = isGone(path) ? [] : yield* listEntries(base, path)
      if (!isGone(path)) notice(path === "/" ? path : `${path}/`, digestOf(entries))
      const children = new Map<string, CustomBackend.Stat & { readonly name: string }>()
      for (const { kind, path: at, size } of entries) children.set(nameOf(at), { name: nameOf(at), kind, size })
      for (const [own, content] of files) {
        if (!isWithin(own, path)) continue
        const [name = "", ...rest] = own.slice(path === "/" ? 1 : path.length + 1).split("/")
        if (rest.length === 0 && content === undefined) children.delete(name)
        else if (rest.length === 0 && content !== undefined)
          children.set(name, { name, kind: "file", size: sizeOf(content) })
        else if (content !== undefined) children.set(name, { name, kind: "directory" })
      }
      return [...children.values()]
    }),
    read: (path, range) =>
      Effect.map(readWhole(path), (content) =>
        range === undefined ? content : CustomBackend.toBytes(content).subarray(range.start, range.end)
      ),
    write: Effect.fnUntraced(function* (path, content) {
      yield* permit([{ operation: "write", path }])
      if (!files.has(path)) yield* below(path)
      files.set(path, content)
    }),
    remove: Effect.fnUntraced(function* (path) {
      yield* permit([{ operation: "delete", path }])
      if (!files.has(path)) yield* below(path)
      files.set(path, undefined)
    }),
    rename: Effect.fnUntraced(function* (from, to) {
      yield* permit([{ operation: "move", from, to }])
      const content = yield* readWhole(from)
      if (!files.has(to)) yield* below(to)
      files.set(to, content)
      files.set(from, undefined)
    })
  }

  return {
    view: (onUse) => {
      const noting =
        <Args extends ReadonlyArray<unknown>, A>(operation: (...args: Args) => A) =>
        (...args: Args): A => {
          onUse()
          return operation(...args)
        }
      const { list, read: readRange, remove, rename, stat, write } = primitives
      const backend = CustomBackend.make({
        stat: noting(stat),
        list: noting(list),
        read: noting(readRange),
        write: noting(write),
        remove: noting(remove),
        rename: noting(rename)
      })
      return { ...backend, paths: base.paths, permit: base.permit }
    },
    changes: Effect.gen(function* () {
      const all: Array<Change> = []
      for (const [path, after] of [...files].toSorted(([left], [right]) => (left < right ? -1 : 1))) {
        const entry = yield* look(base, path)
        const isFile = entry !== undefined && entry !== "directory"
        const before = isFile ? yield* bytesOf(base, path) : undefined
        if (!isSame(before, after)) all.push({ path, diff: diffOf(before, after) })
      }
      return all
    }),
    seen: () => [...seenVersions]
  }
}

const isSame = (left: CustomBackend.Content | undefined, right: CustomBackend.Content | undefined): boolean => {
  if (left === undefined || right === undefined) return left === right
  const [one, other] = [CustomBackend.toBytes(left), CustomBackend.toBytes(right)]
  return one.length === other.length && one.every((byte, at) => byte === other[at])
}

/** The files and folders that are not as a rehearsal has seen them. */
export const changedSince = (base: Backend.Service, seen: SeenFiles): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.forEach(seen, ([path, version]) => {
      const now = path.endsWith("/")
        ? Effect.map(listEntries(base, path === "/" ? path : path.slice(0, -1)), digestOf)
        : Effect.map(look(base, path), versionOf)
      return Effect.match(now, { onFailure: () => [path], onSuccess: (one) => (one === version ? [] : [path]) })
    }),
    (all) => all.flat()
  )
