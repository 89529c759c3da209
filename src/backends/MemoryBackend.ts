/**
 * Files in memory: for as long as a layer lives, or in the state of the agent, saved and shared with it.
 *
 * `layer` has its own files. `layerState` stores files in the state of the current run: they are in every checkpoint and
 * in `AgentResult.state`, and all agents of a tree share them.
 *
 * ```ts
 * import { Effect, Result } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { MemoryBackend } from "effect-deepagents/backends"
 *
 * const agent = Agent.make({ name: "writer", prompt: "You keep notes." })
 *
 * const notes = Agent.run(agent, "Add what we know of Ada.", {
 *   state: MemoryBackend.snapshot({ "/notes.md": "# Notes" })
 * }).pipe(
 *   Effect.map(({ state }) => Result.getOrElse(MemoryBackend.files(state), () => ({}))),
 *   Effect.provide(MemoryBackend.layerState)
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Result from "effect/Result"
import type * as AgentState from "../core/AgentState.ts"
import { type Backend, layer as layerOf, type Service } from "../core/Backend.ts"
import * as BackendError from "../core/BackendError.ts"
import { CurrentRun } from "../core/Run.ts"
import type { InvalidEncoding } from "../core/schema/encoding.ts"
import { once } from "../support/effect/once.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import * as Derive from "./internal/derive/backend.ts"
import type { Primitives } from "./internal/derive/primitives.ts"
import * as Locks from "./internal/files/locks.ts"
import * as MemoryFiles from "./internal/files/memory.ts"
import * as Path from "./internal/files/path.ts"
import * as StateFiles from "./internal/files/state.ts"
import * as Tree from "./internal/files/tree.ts"
import * as shapes from "./internal/shapes.ts"
import { utf8Length } from "./internal/text/utf8.ts"

/** Files by path: a text, or bytes. */
type Files = {
  readonly [path: string]: string | Uint8Array
}

/** `files` are the initial files. `maxFileSize` bounds every file, in bytes (default 10 MiB). */
type Options = {
  /** The initial files, by path. Default: none. */
  readonly files?: Files | undefined
  /** The largest file in bytes. Default: 10 MiB. */
  readonly maxFileSize?: number | undefined
}

/** Checks that no path gets too long if a node moves to a path of `length` bytes. */
const fits = <A>(node: Tree.Node<A>, length: number): boolean => {
  if (length > Path.maxPathBytes) return false
  if (!("children" in node)) return true
  for (const [name, child] of node.children) if (!fits(child, length + 1 + utf8Length(name))) return false
  return true
}

const refuse = (operation: string, path: string, problem: string) =>
  Effect.fail(BackendError.make(operation, path, { _tag: "InvalidPath", problem }))

const makePrimitives = (): Primitives => {
  const tree = Tree.make<MemoryFiles.File>()
  let changes = 0
  const primitives = MemoryFiles.primitives(tree, {
    make: (content, modifiedAt) => ({
      kind: "file",
      content,
      size: Derive.sizeOf(content),
      modifiedAt,
      version: String(++changes)
    }),
    commit: (path, file) => Effect.sync(() => void (file === undefined ? tree.take(path) : tree.put(path, file)))
  })
  return {
    ...primitives,
    rename: (from, to) => Effect.sync(() => void tree.move(from, to)),
    renameDirectory: (from, to) =>
      Effect.suspend(() => {
        const node = tree.get(from)
        if (node !== undefined && !fits(node, utf8Length(to)))
          return refuse("rename", to, `a file in it would have a path longer than ${Path.maxPathBytes} bytes`)
        tree.move(from, to)
        return Effect.void
      })
  }
}

const refuseMake = makeEffectCheck("MemoryBackend", shapes.memoryBackendMake)

/** Makes a backend in memory. An invalid path in `files` is a defect. */
export const make = (options: Options = {}): Effect.Effect<Service> =>
  refuseMake(options) ??
  Effect.gen(function* () {
    const { files, maxFileSize } = options
    // Made on first use: many runs never use their backend.
    const makeBackend = once(() => Derive.make(makePrimitives(), Locks.make(), { maxFileSize }))
    const backend = Derive.suspend(() => Effect.sync(makeBackend))
    if (files === undefined) return backend
    const content = Object.entries(files).map(([path, file]) => ({ path, content: Derive.toBytes(file) }))
    for (const outcome of yield* backend.upload(content)) {
      if (!outcome.ok) return yield* Effect.die(outcome.error)
    }
    return backend
  })

/** Files in memory for the life of the layer. An invalid path in `files` is a defect. */
export const layer = (options?: Options): Layer.Layer<Backend> => layerOf(make(options))

/**
 * Files in the state of the current run, at most 10 MiB each. Outside of a run all operations fail with `Unavailable`.
 *
 * Each file has its own slot, so a write is one small `StateChanged` event. Agents of one tree share the files. The last
 * of two concurrent writes wins; edits are serialised.
 */
export const layerState: Layer.Layer<Backend> = layerOf(
  Effect.sync(() =>
    Derive.suspend((operation, path) =>
      Effect.flatMap(CurrentRun, (run) =>
        run === undefined
          ? Effect.fail(
              BackendError.make(
                operation,
                path,
                { _tag: "Unavailable" },
                {
                  detail:
                    "there is no run whose state could hold the files; use it inside of a run (from a tool or middleware), or use MemoryBackend.layer"
                }
              )
            )
          : StateFiles.backendOf(run.state, operation, path)
      )
    )
  )
)

/**
 * The initial state of a run with files, for the `state` of `Agent.run`. An invalid path makes the operations of that
 * run fail with `Unavailable`; an unreadable value ends the run (`InvalidState`).
 */
export const snapshot: (files: Files) => AgentState.Snapshot = StateFiles.snapshot

/** The files in a state by path, as text if they are UTF-8, else as bytes. */
export const files: (snapshot: AgentState.Snapshot) => Result.Result<Files, InvalidEncoding> = StateFiles.files
