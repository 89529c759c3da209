/** Primitives over a tree of files in memory: of the backend in memory, and of the one in the agent's state. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as BackendError from "../../../core/BackendError.ts"
import type { Child, Content, Primitives, Stat } from "../derive/primitives.ts"
import type { Tree } from "./tree.ts"

/** A file with its content and stats. */
export interface File extends Stat {
  readonly kind: "file"
  readonly content: Content
  readonly version: string
}

/** The operations that put files into the tree and take them out. */
export interface Changes {
  readonly make: (content: Content, modifiedAt: number) => File
  /** Puts a file at a path where no directory is, or takes it away. */
  readonly commit: (path: string, file: File | undefined) => Effect.Effect<void>
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** A content as it is kept: as a text if it is one, so that it is searched and edited as such; else a copy. */
export const keep = (content: Content): Content =>
  typeof content === "string"
    ? content
    : Result.getOrElse(Result.try({ try: () => utf8.decode(content), catch: () => undefined }), () => content.slice())

const fail = (operation: string, path: string, reason: BackendError.Reason) =>
  Effect.fail(BackendError.make(operation, path, reason))

export const primitives = (tree: Tree<File>, { commit, make }: Changes): Primitives => {
  const fileAt = (operation: string, path: string): Effect.Effect<File, BackendError.BackendError> =>
    Effect.suspend(() => {
      const node = tree.get(path)
      if (node === undefined) return fail(operation, path, { _tag: "NotFound" })
      return "file" in node ? Effect.succeed(node.file) : fail(operation, path, { _tag: "IsDirectory" })
    })

  return {
    stat: (path) =>
      Effect.sync((): Stat | undefined => {
        const node = tree.get(path)
        return node === undefined || "file" in node ? node?.file : { kind: "directory" }
      }),
    list: (path) =>
      Effect.suspend(() => {
        const node = tree.get(path)
        if (node === undefined) return fail("list", path, { _tag: "NotFound" })
        if ("file" in node) return fail("list", path, { _tag: "NotDirectory" })
        return Effect.succeed(
          Array.from(node.children, ([name, child]): Child => {
            if ("children" in child) return { name, kind: "directory" }
            const { modifiedAt, size } = child.file
            return { name, kind: "file", size, modifiedAt }
          })
        )
      }),
    read: (path) => Effect.map(fileAt("read", path), (file) => file.content),
    write: (path, content) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const file = make(keep(content), now)
        return Effect.as(commit(path, file), file.version)
      }),
    remove: (path) => Effect.flatMap(fileAt("remove", path), () => commit(path, undefined)),
    // The new file comes first, so that an interruption loses nothing.
    rename: (from, to) =>
      Effect.flatMap(fileAt("rename", from), (file) => Effect.andThen(commit(to, file), commit(from, undefined)))
  }
}
