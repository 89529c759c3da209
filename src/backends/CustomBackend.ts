/**
 * A backend of your own from a few primitives: for files that live where no layer of this library reaches.
 *
 * Pass functions that stat a path, list a directory, and read, write, remove and rename files. Windows, versions, edits,
 * searches, recursive deletes and moves, and transfers of many files are derived from these.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { BackendError } from "effect-deepagents"
 * import { CustomBackend } from "effect-deepagents/backends"
 *
 * const missing = (path: string) => BackendError.make("read", path, { _tag: "NotFound" })
 * const refuse = (path: string) => Effect.fail(BackendError.make("write", path, { _tag: "Unsupported" }))
 * const pages = new Map([["/help.md", new TextEncoder().encode("# Help")]])
 *
 * const layer = CustomBackend.layer({
 *   stat: (path) =>
 *     Effect.succeed(pages.has(path) ? { kind: "file" } : path === "/" ? { kind: "directory" } : undefined),
 *   list: () => Effect.succeed([...pages.keys()].map((path) => ({ name: path.slice(1), kind: "file" }))),
 *   read: (path) => Effect.fromNullishOr(pages.get(path)).pipe(Effect.mapError(() => missing(path))),
 *   write: refuse,
 *   remove: refuse,
 *   rename: refuse
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Backend from "../core/Backend.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import * as Derive from "./internal/derive/backend.ts"
import type { Content, Options, Primitives } from "./internal/derive/primitives.ts"
import * as Locks from "./internal/files/locks.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

export type { Content } from "./internal/derive/primitives.ts"

export type { Options, Primitives, Stat } from "./internal/derive/primitives.ts"

/** Encodes a text as UTF-8, and passes bytes on. */
export const toBytes: (content: Content) => Uint8Array = Derive.toBytes

const refuseMake = makeEffectCheck("CustomBackend.make", shapes.customBackendMake)

/**
 * Makes a backend. It serialises changes of one file: no edit is lost, and no directory is moved during a write in it.
 *
 * A search takes at most 15 seconds (`grep`) or 5 seconds (`glob`) and then returns partial results. The operations
 * don't call each other, so each can be replaced: `{ ...CustomBackend.make(primitives), grep: myGrep }`.
 */
export const make = (primitives: Primitives, options?: Options): Backend.Service => {
  const refused = refuseMake(options)
  if (refused === undefined) return Derive.make(primitives, Locks.make(), options)
  const refuse = () => refused
  const all = { stat: refuse, list: refuse, read: refuse, write: refuse, remove: refuse, rename: refuse }
  return Derive.make(all, Locks.make())
}

const refuseLayer = makeLayerCheck("CustomBackend.layer", shapes.customBackendLayer)

/** The layer of {@link make}. */
export const layer = (primitives: Primitives, options?: Options): Layer.Layer<Backend.Backend> =>
  refuseLayer(options) ?? Backend.layer(Effect.sync(() => make(primitives, options)))
