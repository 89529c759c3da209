/** Plans the writes of a patch before the first one. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { decodeText } from "../files/mime.ts"
import * as Path from "../files/path.ts"
import { type Change, type Patch, InvalidPatch } from "./model.ts"
import { apply } from "./text.ts"

/** A file as it was read, before anything was written. */
export interface LoadedFile {
  readonly bytes: Uint8Array
  readonly version: string
}

/** A write of a patch, with the previous file to undo it. */
export type Step =
  | { readonly _tag: "Create"; readonly path: string; readonly after: string }
  | { readonly _tag: "Rewrite"; readonly path: string; readonly before: LoadedFile; readonly after: string }
  | { readonly _tag: "Move"; readonly from: string; readonly to: string; readonly before: LoadedFile }
  | { readonly _tag: "Remove"; readonly path: string; readonly before: LoadedFile }

/** The reason that a patch can't be done. */
export type Failure = InvalidPatch | BackendError.BackendError

const utf8 = new TextEncoder()

/** The bytes of a text. */
export const encode = (text: string): Uint8Array => utf8.encode(text)

/** The text of a file; `undefined` for a binary one. */
export const textOf = (path: string, { bytes }: LoadedFile): string | undefined =>
  Result.getOrUndefined(decodeText(path, bytes))

/** Loads a file; `undefined` if it is missing. Reads its version first, so that a later change is a conflict. */
export const load = Effect.fnUntraced(function* (backend: Backend.Service, path: string) {
  const result = yield* Effect.result(backend.read(path, { limit: 0 }))
  if (Result.isFailure(result)) {
    return result.failure.reason._tag === "NotFound" ? undefined : yield* Effect.fail(result.failure)
  }
  const [transfer] = yield* backend.download([path])
  if (transfer === undefined) return undefined
  if (!transfer.ok) return yield* Effect.fail(transfer.error)
  return { bytes: transfer.value, version: result.success.version } satisfies LoadedFile
})

/** The paths of a section, by which it is known. */
interface Section {
  readonly change: Change
  readonly path: string
  readonly to: string | undefined
}

const sectionOf = (
  change: Change,
  paths: Backend.Paths | undefined
): Result.Result<Section, BackendError.BackendError> =>
  Result.gen(function* () {
    const path = yield* Path.resolve("patch", change.path, paths)
    const to =
      change._tag === "Update" && change.moveTo !== undefined
        ? yield* Path.resolve("patch", change.moveTo, paths)
        : undefined
    return { change, path, to: to === path ? undefined : to }
  })

const all = (sections: ReadonlyArray<Section>): ReadonlyArray<string> => [
  ...new Set(sections.flatMap(({ path, to }) => (to === undefined ? [path] : [path, to])))
]

/** The paths that a patch names, normalised. */
export const pathsOf = (
  patch: Patch,
  paths: Backend.Paths | undefined
): Result.Result<ReadonlyArray<string>, Failure> =>
  Result.map(Result.all(patch.changes.map((change) => sectionOf(change, paths))), all)

/** The state of a path while the sections are gone over, one after the other. */
interface State {
  readonly path: string
  readonly before: LoadedFile | undefined
  /** `undefined` when it is to be deleted. */
  after: string | undefined
  to: string | undefined
  touched: boolean
}

const twice = (section: Section, path = section.path): InvalidPatch =>
  new InvalidPatch({
    line: section.change.line,
    found: `another one for ${path}`,
    expected: "one section a file (several @@ go into one section)"
  })

const refuse = (path: string, reason: BackendError.Reason, detail?: string) =>
  BackendError.make("patch", path, reason, { detail })

const readText = (path: string, before: LoadedFile) => Effect.fromResult(decodeText(path, before.bytes))

const enter = Effect.fnUntraced(function* ({ change, path, to }: Section, state: State) {
  switch (change._tag) {
    case "Add": {
      const exists = state.touched ? state.after !== undefined : state.before !== undefined
      if (exists) {
        return yield* refuse(path, { _tag: "AlreadyExists" }, "to change it, use *** Update File:")
      }
      state.after = change.lines.map((line) => `${line}\n`).join("")
      break
    }
    case "Delete":
      if (state.before === undefined) return yield* refuse(path, { _tag: "NotFound" })
      state.after = undefined
      break
    case "Update": {
      if (state.before === undefined) return yield* refuse(path, { _tag: "NotFound" }, "to make it, use *** Add File:")
      if (change.hunks.length > 0) {
        const text =
          state.after ?? (yield* Effect.mapError(readText(path, state.before), (reason) => refuse(path, reason)))
        state.after = yield* Effect.fromResult(apply(text, change.hunks, path))
      }
      state.to = to
    }
  }
  state.touched = true
})

const toSteps = (state: State): ReadonlyArray<Step> => {
  const { after, before, path, to } = state
  if (before === undefined) return after === undefined ? [] : [{ _tag: "Create", path, after }]
  const moves: ReadonlyArray<Step> = to === undefined ? [] : [{ _tag: "Move", from: path, to, before }]
  if (after === undefined) return to === undefined ? [{ _tag: "Remove", path, before }] : moves
  return textOf(path, before) === after ? moves : [{ _tag: "Rewrite", path, before, after }, ...moves]
}

const rankOf = (step: Step): number => (step._tag === "Remove" ? 1 : 0)

/**
 * Reads and checks every file of a patch and computes its result; writes nothing. Deletions come last, since they
 * are the hardest to undo.
 */
export const plan = Effect.fnUntraced(function* (
  backend: Backend.Service,
  patch: Patch
): Effect.fn.Return<ReadonlyArray<Step>, Failure> {
  const sections = yield* Effect.fromResult(Result.all(patch.changes.map((change) => sectionOf(change, backend.paths))))
  const paths = all(sections)
  const loaded = yield* Effect.forEach(paths, (path) => Effect.result(load(backend, path)), { concurrency: 8 })
  const states = new Map<string, State>()
  for (const [index, path] of paths.entries()) {
    const before = yield* Effect.fromResult(loaded[index] ?? Result.succeed(undefined))
    states.set(path, { path, before, after: undefined, to: undefined, touched: false })
  }
  const last = new Map<string, Section>()
  const targets = new Set<string>()
  for (const section of sections) {
    const state = states.get(section.path)
    if (state === undefined) continue
    // Two updates of one file are one in two parts; a deletion and a new file of one name replace it.
    const before = last.get(section.path)?.change._tag
    const goesOn =
      before === undefined ||
      (before === "Update" && section.change._tag === "Update" && state.to === undefined) ||
      (before === "Delete" && section.change._tag === "Add")
    if (!goesOn || targets.has(section.path)) return yield* twice(section)
    if (section.to !== undefined && last.has(section.to)) return yield* twice(section, section.to)
    last.set(section.path, section)
    if (section.to !== undefined) {
      if (targets.has(section.to)) return yield* twice(section, section.to)
      targets.add(section.to)
      if (states.get(section.to)?.before !== undefined) return yield* refuse(section.to, { _tag: "AlreadyExists" })
    }
    yield* enter(section, state)
  }
  return [...states.values()]
    .filter((state) => state.touched)
    .flatMap(toSteps)
    .sort((left, right) => rankOf(left) - rankOf(right))
})
