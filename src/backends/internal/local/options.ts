/** Options of a folder, apart from what works on it: their declarations need no types of Node. */

/**
 * `root` is a folder that exists; if it is a link, what that leads to when the layer is built. `ripgrep` is the path of
 * `rg`, which makes searches of many files faster (default: the one on `PATH`, if there is one outside of the root);
 * `false` is none. Results are the same. `maxFileSize` bounds what is written, edited, uploaded and downloaded, in
 * bytes a file (default 100 MiB); windows are read from files of any size.
 */
export interface Options {
  readonly root: string
  readonly ripgrep?: string | false | undefined
  readonly maxFileSize?: number | undefined
}
