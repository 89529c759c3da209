/**
 * The files of this machine, in the folders that you name, by the machine's own paths.
 *
 * Use it for an agent on a developer's machine: the paths that compilers, stack traces and `pwd` print work in all file
 * tools, and the other way round. `FilesystemBackend` shows one folder as `/` instead, for tenants and stores.
 *
 * - Relative paths count from `cwd`. `..` is folded, `~` is the home, `file://` addresses are paths.
 * - A path outside of the folders fails with `OutsideRoot`, whether something is there or not. A change in a folder that
 *   may only be read fails with `PermissionDenied`.
 * - Links count by their targets. A folder of the list can't be deleted or moved.
 * - Everything else is as in `FilesystemBackend`: `.git` is asked about, writes are atomic, changes are serialised.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FileTools } from "effect-deepagents/backends"
 * import * as HostFiles from "effect-deepagents/backends/HostFiles"
 *
 * const reader = Agent.make({ name: "reader", prompt: "You explain this code.", tools: FileTools.make() })
 * const files = HostFiles.layer({ cwd: ".", folders: [{ path: "/srv/shared", access: "read" }] })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Backend from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import * as Host from "./internal/host/files.ts"
import type { Folder, Options, Refused } from "./internal/host/options.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

export type { Folder, Options, Refused }

const refuseMake = makeEffectCheck("HostFiles", shapes.hostFilesMake)

/** Makes the service. Fails if a folder is missing or none, and with `Unsupported` on Windows (use WSL). */
export const make = (options: Options): Effect.Effect<Backend.Service, BackendError, Scope.Scope> =>
  refuseMake(options) ?? Effect.map(Host.make(options), ({ service }) => service)

/** The files of this machine: {@link make} as a layer. */
export const layer = (options: Options): Layer.Layer<Backend.Backend, BackendError> => Backend.layer(make(options))
