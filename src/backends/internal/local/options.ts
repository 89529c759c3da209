/** Options of a folder and its shell, in a module whose declarations need no types of Node. */
import type { Environment } from "./environment.ts"

/** Options of the files of a folder. */
export interface Options {
  /** An existing folder; a link is resolved when the layer is built. */
  readonly root: string
  /**
   * The path of `rg`, which speeds up searches of many files; `false` disables it. Default: `rg` on `PATH`, if
   * outside of the root.
   */
  readonly ripgrep?: string | false | undefined
  /**
   * The largest file to write, edit, upload or download, in bytes. Windows are read from files of any size. Default:
   * 100 MiB.
   */
  readonly maxFileSize?: number | undefined
}

/** Options of a shell. */
export interface ShellOptions {
  /** The variables of commands. Default: the minimal ones. */
  readonly env?: Environment | undefined
  /** The absolute path of a POSIX shell. Default: `/bin/sh`. */
  readonly shell?: string | undefined
  /** The most characters of output, half of them from its end. Default: 100,000. */
  readonly outputLimit?: number | undefined
}
