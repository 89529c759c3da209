/** Files in the state of a run: a slot for each, shared by the whole tree of agents, `null` once it is deleted. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AgentState from "../../../core/AgentState.ts"
import type { Service } from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { InvalidEncoding } from "../../../core/schema/encoding.ts"
import * as Attached from "../../../support/effect/attached.ts"
import * as Derive from "../derive/backend.ts"
import type { Content } from "../derive/primitives.ts"
import { versionOf } from "../derive/version.ts"
import * as Locks from "./locks.ts"
import * as MemoryFiles from "./memory.ts"
import * as Path from "./path.ts"
import * as Tree from "./tree.ts"

const modifiedAt = Schema.optionalKey(Schema.Finite)

/** A file in a state. */
const SavedFiles = Schema.Union([
  Schema.Struct({ text: Schema.String, modifiedAt }),
  Schema.Struct({ base64: Schema.Uint8ArrayFromBase64, modifiedAt })
])
type SavedFiles = typeof SavedFiles.Type

const prefix = "files"

/** The slot of a path. */
const slotOf = AgentState.family(prefix, {
  schema: Schema.NullOr(SavedFiles),
  initial: null,
  shared: { merge: (_current, incoming) => incoming }
})

const contentOf = (saved: SavedFiles): Content => ("text" in saved ? saved.text : saved.base64)

const save = (content: Content, at?: number): SavedFiles => ({
  ...(typeof content === "string" ? { text: content.toWellFormed() } : { base64: content }),
  ...(at === undefined ? {} : { modifiedAt: at })
})

/** The path of a slot, or the problem of its name. */
const pathOf = (name: string): Result.Result<string, InvalidEncoding> => {
  const path = name.slice(prefix.length)
  const normal = Path.normalize("read", path)
  return Result.isSuccess(normal) && normal.success === path && path !== "/"
    ? Result.succeed(path)
    : Result.fail(
        new InvalidEncoding({ what: "state", path: name, found: "this name", expected: "the path of a file" })
      )
}

const inTheWay = (path: string): InvalidEncoding =>
  new InvalidEncoding({ what: "state", path: prefix + path, found: "a file", expected: "none on the way to another" })

/** The tree and the locks that all agents of one tree share. */
interface Common {
  readonly tree: Tree.Tree<MemoryFiles.File>
  readonly locks: Locks.Locks
}

// The key is common to all stores of a tree of agents, so that their layers share the lock of a file.
const commons = Attached.make<object, Common>()

const makeFile = (content: Content, modifiedAt?: number): MemoryFiles.File => {
  const bytes = Derive.toBytes(content)
  const at = modifiedAt === undefined ? {} : { modifiedAt }
  return { kind: "file", content, size: bytes.length, version: versionOf(bytes), ...at }
}

const load = (store: AgentState.Store): Effect.Effect<Common, InvalidEncoding> =>
  Effect.gen(function* () {
    const tree = Tree.make<MemoryFiles.File>()
    for (const name of yield* store.names(`${prefix}/`)) {
      const path = yield* Effect.fromResult(pathOf(name))
      // A value that can't be read ends the run, as that of any other slot does.
      const saved = yield* store.get(slotOf(path))
      if (saved === null) continue
      if (!tree.put(path, makeFile(contentOf(saved), saved.modifiedAt))) return yield* Effect.fail(inTheWay(path))
    }
    return { tree, locks: Locks.make() }
  })

/** Loads the files once; the first of two concurrent loads wins. */
const commonOf = (store: AgentState.Store): Effect.Effect<Common, InvalidEncoding> =>
  Effect.suspend(() => {
    const cachedCommon = commons.get(store.shared)
    if (cachedCommon !== undefined) return Effect.succeed(cachedCommon)
    return Effect.map(load(store), (loaded) => {
      const common = commons.get(store.shared) ?? loaded
      commons.set(store.shared, common)
      return common
    })
  })

const makeBackend = (store: AgentState.Store, { locks, tree }: Common): Service =>
  Derive.make(
    MemoryFiles.primitives(tree, {
      make: makeFile,
      // The tree changes in the step that changes the slot: nothing can come between them.
      commit: (path, file) =>
        store.update(slotOf(path), () => {
          if (file === undefined) tree.take(path)
          else tree.put(path, file)
          return file === undefined ? null : save(file.content, file.modifiedAt)
        })
    }),
    locks
  )

const backends = Attached.make<AgentState.Store, Service>()

/** The backend over the files in a state. */
export const backendOf = (
  store: AgentState.Store,
  operation: string,
  path: string
): Effect.Effect<Service, BackendError.BackendError> =>
  Effect.suspend(() => {
    const cachedBackend = backends.get(store)
    if (cachedBackend !== undefined) return Effect.succeed(cachedBackend)
    return commonOf(store).pipe(
      Effect.map((common) => {
        const backend = makeBackend(store, common)
        backends.set(store, backend)
        return backend
      }),
      Effect.mapError((cause) =>
        BackendError.make(operation, path, { _tag: "Unavailable" }, { detail: cause.message, cause })
      )
    )
  })

/** A state with files. Invalid paths are kept, and fail in the run that uses the state. */
export const snapshot = (files: { readonly [path: string]: Content }): AgentState.Snapshot =>
  Object.fromEntries(
    Object.entries(files).map(([inputPath, content]) => {
      const path = Result.getOrElse(Path.normalize("write", inputPath), () => `/${inputPath}`)
      const slot = slotOf(path)
      return [slot.name, slot.encode(save(MemoryFiles.keep(content)))]
    })
  )

/** The files that a state holds. */
export const files = (
  state: AgentState.Snapshot
): Result.Result<{ readonly [path: string]: Content }, InvalidEncoding> =>
  Result.gen(function* () {
    const entries: Array<readonly [string, Content]> = []
    for (const name of Object.keys(state)) {
      if (!name.startsWith(`${prefix}/`)) continue
      const path = yield* pathOf(name)
      const saved = yield* AgentState.read(state, slotOf(path))
      if (saved !== null) entries.push([path, contentOf(saved)])
    }
    return Object.fromEntries(entries.sort(([left], [right]) => Path.compare(left, right)))
  })
