/** Options of a folder, in a module whose declarations need no types of Node. */

/**
 * Options of the files of a folder.
 *
 * - `root`: an existing folder; a link is resolved when the layer is built
 * - `ripgrep`: the path of `rg`, which speeds up searches of many files; by default `rg` on `PATH`, if outside the
 *   root. `false` disables it. Results are the same
 * - `maxFileSize`: the largest file to write, edit, upload or download, in bytes; 100 MiB by default. Windows are
 *   read from files of any size
 */
export interface Options {
  readonly root: string
  readonly ripgrep?: string | false | undefined
  readonly maxFileSize?: number | undefined
}
