/**
 * The files of a folder of this machine.
 *
 * No path escapes the folder: neither `..` nor a link at any depth, even if it changes during an operation. Links are
 * resolved before anything outside the root is touched. Links within the root work, and a write through a link changes
 * its target. Devices, sockets and pipes are neither read nor written. Linux also prevents a race in which another
 * process swaps a folder for a link; other systems leave a window of microseconds. Hard links look like files: don't
 * hard-link outside files into the root.
 *
 * The files in `.git` decide which programs git runs. Each change of them asks the run's `Approvals`, and fails
 * with `PermissionDenied` without one. Reading them needs no approval.
 *
 * Writes are atomic: a hidden file is written next to the old one and renamed over it. A replacement is flushed to disk
 * first (fdatasync), so a power cut leaves either the old or the new file. New files and folders are not flushed. Mode
 * and owner are kept, extended attributes are lost. `version` combines the file's times, size and inode, so touching a
 * file changes it. Writes through this backend have timestamps in microseconds, others in the file system's precision.
 *
 * Changes of one file are serialised across all layers and processes of this machine: no edit is lost, and the second of
 * two writes on the same version fails with `Conflict`. A wait of more than 10 seconds for another process fails with
 * `Unavailable`. Other machines on a network file system, other network namespaces (containers) and shell commands are
 * not synchronised.
 *
 * `grep` uses ripgrep, if installed, to preselect files; the results are the same without it. A search takes at most 25
 * seconds.
 *
 * Listings omit names that are not UTF-8 or contain a backslash.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Backend } from "effect-deepagents"
 * import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
 *
 * const readme = Backend.Backend.use((backend) => backend.read("/README.md"))
 *
 * const program = readme.pipe(Effect.provide(FilesystemBackend.layer({ root: "./project" })))
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Backend from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import * as Files from "./internal/local/files.ts"
import type { Options } from "./internal/local/options.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import * as Permissions from "./Permissions.ts"

export type { Options }

const refuseMake = makeEffectCheck("FilesystemBackend", shapes.filesystemBackendMake)

/**
 * Makes the service. Fails with `NotFound` or `NotDirectory` if the root is not a folder, and with `Unsupported` on
 * Windows (use WSL).
 */
export const make = (options: Options): Effect.Effect<Backend.Service, BackendError> =>
  refuseMake(options) ?? Effect.map(Files.make(options), ({ service }) => service)

/** The files of a folder: {@link make} as a layer. */
export const layer = (options: Options): Layer.Layer<Backend.Backend, BackendError> => Backend.layer(make(options))

/** Rules of a folder that is only read: hidden files, such as `.env`, and installed dependencies are not there. */
const readOnly: Permissions.Options = {
  rules: [
    { operations: ["read"], paths: ["/**/.*", "/**/node_modules"], ruling: "refuse" },
    { operations: ["read"], paths: ["/**"], ruling: "allow" }
  ],
  default: "refuse"
}

/** The files of a folder, only to be read, without hidden files and `node_modules`. */
export const layerReadOnly = (options: Options): Layer.Layer<Backend.Backend, BackendError> =>
  Backend.layer(Effect.flatMap(make(options), (files) => Effect.orDie(Permissions.wrap(files, readOnly))))

/** Like {@link layer}; any option may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<Backend.Backend, BackendError | Config.ConfigError> =>
  Backend.layer(Effect.flatMap(fromConfigured<Options>(options), make))
