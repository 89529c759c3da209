/**
 * A machine as plain data: its image, its content and its limits. It can be written to a file, and compared.
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

/** A machine as data. */
export interface Manifest {
  /** The image of the machine: a name with a tag, or the id of a snapshot. */
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
  /**
   * Secrets by name. The variable of this name is `{{secret:NAME}}`, which an egress proxy replaces on the way out; the
   * value is never in the machine. Default: none.
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
  /** Ports of servers in the machine, to be reached from this one. They need a network. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** Limits of the machine. Default: each field's own. */
  readonly limits?:
    | {
        /** The memory of all processes together, in bytes. Swap is off. Default: 2 GiB. */
        readonly memoryBytes?: number | undefined
        /** The most processes and threads at once. Default: 512. */
        readonly processes?: number | undefined
        /** Processor cores, with fractions. Default: all. */
        readonly cpus?: number | undefined
      }
    | undefined
}
