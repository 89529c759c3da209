/** Options of a folder, in a module whose declarations need no types of Node. */

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
