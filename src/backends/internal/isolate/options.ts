/** Options of the isolation of commands, in a module whose declarations need no types of Node. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** A path of the machine, by which commands reach it too. */
export interface Bind {
  readonly path: string
  readonly access: "read" | "write"
}

/** Limits of the processes of a command. */
export interface Limits {
  /**
   * The memory of all commands of the layer together, in bytes, without swap. It needs a control group (cgroup v2) that
   * this user may write to; without one, the layer fails. Default: no limit.
   */
  readonly memoryBytes?: number | undefined
  /** The most processes and threads. It does not bind the superuser. Default: 2,048. */
  readonly processes?: number | undefined
  /** The largest file that a process writes, in bytes. Default: 4 GiB. */
  readonly fileBytes?: number | undefined
  /** The most open files of a process. Default: 4,096. */
  readonly openFiles?: number | undefined
}

/** A server of `node:net` that listens in the network of the commands. */
export interface Listener {
  readonly address: () => unknown
  readonly close: () => unknown
}

/** The only way from the commands to the network: it answers on the listener, and tells the commands by variables. */
export type Egress<R> = (
  listener: Listener
) => Effect.Effect<{ readonly env: { readonly [name: string]: string } }, never, R | Scope.Scope>

/** The reach of commands beside the system and their folders. */
export interface Isolation<R = never> {
  /** Further paths that commands may read. Default: none. */
  readonly readable?: ReadonlyArray<string> | undefined
  /** Further folders that commands may change, such as a cache of packages. Default: none. */
  readonly writable?: ReadonlyArray<string> | undefined
  /** Limits of the processes of a command. */
  readonly limits?: Limits | undefined
  /** The way to the network, such as `NodeEgress.start`. Default: no network but their own loopback. */
  readonly egress?: Egress<R> | undefined
}

/** A program that is put into a sandbox of its own. */
export interface ProgramOptions<R = never> extends Isolation<R> {
  /** The program and its arguments. */
  readonly command: readonly [program: string, ...args: ReadonlyArray<string>]
  /** The folder in which the program starts. It may change the folder. */
  readonly cwd: string
  /** The variables of the program, beside those of the sandbox, such as `HOME` and `TMPDIR`. Default: none. */
  readonly env?: { readonly [name: string]: string } | undefined
}
