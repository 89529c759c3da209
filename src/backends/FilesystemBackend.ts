/**
 * The files of a folder of this machine.
 *
 * Nothing leads out of the folder: not `..`, not links, at any depth, however they are changed meanwhile. What a link
 * leads to is known before anything outside of the root is touched. Links inside of the root work; writing through one
 * changes what it leads to. Devices, sockets and pipes are neither read nor written. On Linux a folder that another
 * process swaps for a link at the worst moment leads nowhere either; other systems have no way to hold a folder, and
 * there a few microseconds remain. Hard links can't be told from files: don't put such to outside files in the root.
 *
 * The files of git repositories (`.git` and all that is in it) decide which programs git runs. Each change of them asks
 * the `Permissions.Approver`, and fails with `PermissionDenied` where nobody can be asked. Reading them is free.
 *
 * Writes are atomic: the content goes to a hidden file beside the old one, which takes its place by a rename. What
 * replaces a file is flushed to the disk before (fdatasync): after a power cut there is the old file or the new one,
 * whole. A file that was not there before is not flushed, nor are folders. Mode and owner are kept, extended attributes
 * are not. `version` is made of the file's times, size and inode: it also changes when a file is only touched. What is
 * written here has its time to the microsecond; what others write, as exactly as the file system's clock has it.
 *
 * Changes of one file are made one after the other, by whichever layer of this process and in whichever process of this
 * machine: no edit is lost, and of two that write on the same version one is told `Conflict`. Who waits for another
 * process for more than 10 seconds fails with `Unavailable`. Other machines on a network's file system, other network
 * namespaces (containers) and commands of a shell are not waited for.
 *
 * `grep` asks ripgrep, if there is one, which files to look into, and looks by itself: the results are the same
 * without. A search takes at most 25 seconds, mostly far less.
 *
 * Names that are not UTF-8, or that no path can say (backslashes), are left out of all listings.
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
import { type Configured, fromConfigured } from "../core/configured.ts"
import * as Files from "./internal/local/files.ts"
import type { Options } from "./internal/local/options.ts"

export type { Options }

/**
 * Makes the service. Fails with `NotFound` or `NotDirectory` if the root is no folder, with `Unsupported` on Windows
 * (where its guarantees are not checked; use WSL).
 */
export const make = (options: Options): Effect.Effect<Backend.Service, BackendError> =>
  Effect.map(Files.make(options), ({ service }) => service)

/** The files of a folder: {@link make} as a layer. */
export const layer = (options: Options): Layer.Layer<Backend.Backend, BackendError> => Backend.layer(make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<Backend.Backend, BackendError | Config.ConfigError> =>
  Backend.layer(Effect.flatMap(fromConfigured<Options>(options), make))
