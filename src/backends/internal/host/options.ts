/** Options of the files of a machine, in a module whose declarations need no types of Node. */
import type * as Effect from "effect/Effect"
import type * as FilesystemBackend from "../local/options.ts"

/** A folder of the machine, with all below it. */
export interface Folder {
  /** Its path: from the root, from the working folder, or after `~/`. */
  readonly path: string
  /** The allowed operations in it. `write` includes `read`. */
  readonly access: "read" | "write"
}

/** An operation that was refused: the path of the machine, and the access that it needs. */
export interface Refused {
  readonly path: string
  readonly access: "read" | "write"
  /** True for a path that may be read. */
  readonly isReadable: boolean
}

/** Options of the files of a machine. */
export interface Options extends Omit<FilesystemBackend.Options, "root"> {
  /** The working folder. It may be changed, unless `folders` says otherwise. */
  readonly cwd: string
  /**
   * Further folders. The deepest folder of a path decides. An effect is run before each operation, so folders may come
   * and go. Default: none.
   */
  readonly folders?: ReadonlyArray<Folder> | Effect.Effect<ReadonlyArray<Folder>> | undefined
  /**
   * The folder for large results and old conversations, which the agent may use too. It is made if it is missing.
   * Default: a new folder in the temporary folder, deleted with the layer.
   */
  readonly scratch?: string | undefined
  /** Tells the model how to get a refused path. Default: nothing. */
  readonly advise?: ((refused: Refused) => string | undefined) | undefined
}
