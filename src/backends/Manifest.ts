/**
 * A machine as plain data: its image, its content and its limits. It can be written to a file, and compared. Containers
 * and the machines of providers are made from the same shape; a provider's own type leaves out other fields.
 *
 * ```ts
 * import type { Manifest } from "effect-deepagents/backends"
 *
 * const manifest: Manifest.Manifest = {
 *   image: "node:24",
 *   environment: { CI: "1" },
 *   files: { "notes.md": "# Notes\n" },
 *   limits: { memoryBytes: 2 ** 31, processes: 256 }
 * }
 * ```
 */
import type * as Effect from "effect/Effect"
import type { BackendError } from "../core/BackendError.ts"

/** Limits that a provider may have. */
export interface MachineLimits {
  /** The memory of all processes together, in bytes. Default: 2 GiB without swap in a container, else the provider's. */
  readonly memoryBytes?: number | undefined
  /** Processor cores, with fractions. Default: all of this machine for a container, else the provider's. */
  readonly cpus?: number | undefined
}

/** Limits of a machine. */
export interface Limits extends MachineLimits {
  /** The most processes and threads at once. Default: 512. */
  readonly processes?: number | undefined
}

/** The part of a manifest that every machine can do. */
export interface Content {
  /** The image of the machine: a name with a tag, or the image that `snapshot` gave. */
  readonly image: string
  /** Variables of all commands, beside the image's. Default: none. */
  readonly environment?: { readonly [name: string]: string } | undefined
  /** Texts of files of a new machine, by their path in the backend. Default: none. */
  readonly files?: { readonly [path: string]: string } | undefined
  /** Repositories that a new machine clones by its own git; a URL needs a network. Default: none. */
  readonly repositories?:
    | ReadonlyArray<{
        /** A URL, or a path of the machine. */
        readonly url: string
        /** The folder of the clone, a path of the backend. */
        readonly path: string
        /** A branch or a tag. Default: the repository's own. */
        readonly ref?: string | undefined
      }>
    | undefined
}

/** A machine as data. */
export interface Manifest extends Content {
  /**
   * Secrets by name. The variable of this name is a placeholder, which a proxy replaces on the way out; the value is never
   * in the machine. Default: none.
   */
  readonly secrets?: ReadonlyArray<string> | undefined
  /** The network that commands reach: none, all, or a network of the engine by its name. Default: `none`. */
  readonly network?:
    | "none"
    | "open"
    | {
        /** The name of a network of the engine. */
        readonly name: string
      }
    | undefined
  /** Ports of servers in the machine, to be reached from outside of it. They need a network. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** Limits of the machine. Default: each field's own. */
  readonly limits?: Limits | undefined
}

/** The operations of a machine beside files and commands. A provider has the operations of its API. */
export interface Operations {
  /** Makes an image of the machine's file system and gives its name, for the `image` of a manifest. */
  readonly snapshot: Effect.Effect<string, BackendError>
  /** Stops the machine; its files stay. Commands wait for {@link Operations.resume}: they fail until then, or wake it. */
  readonly pause: Effect.Effect<void, BackendError>
  /** Lets a paused machine go on. */
  readonly resume: Effect.Effect<void, BackendError>
  /** The address of a port of the manifest. */
  readonly address: (port: number) => Effect.Effect<string, BackendError>
}

/** A machine in a list. */
export interface Entry {
  /** Its id, for `sandboxId`. */
  readonly id: string
  /** Its state, in the provider's words. */
  readonly state: string
}
