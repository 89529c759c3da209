/**
 * The folder that the demo's agents may read, and the one file that they may write.
 *
 * All paths are relative to the root, with `/`. What is not a plain file below the root is not there for them: nothing
 * outside (through `..`, an absolute path or a symbolic link), no hidden files (`.env`, `.git`), no dependencies.
 */
import { Context, Effect, FileSystem, Layer, Path, type PlatformError } from "effect"
import { ToolError } from "effect-deepagents"

/** A file and its size. */
export interface Entry {
  readonly path: string
  readonly bytes: number
}

const maxBytes = 1_000_000
const hiddenFolders = ["node_modules", "dist"]

export class Workspace extends Context.Service<
  Workspace,
  {
    readonly files: Effect.Effect<ReadonlyArray<Entry>, PlatformError.PlatformError>
    readonly read: (path: string) => Effect.Effect<string, ToolError.ToolError>
    /** Writes the report, all of it or nothing, and gives its path. */
    readonly report: (markdown: string) => Effect.Effect<string, PlatformError.PlatformError>
  }
>()("demo/Workspace") {
  /** `root` is read, `reportFile` is written. */
  static readonly layer = (root: string, reportFile: string) =>
    Layer.effect(
      Workspace,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const realRoot = yield* fs.realPath(root)

        const isAllowed = (absolute: string): boolean => {
          const parts = path.relative(realRoot, absolute).split(path.sep)
          return (
            !path.isAbsolute(parts.join(path.sep)) &&
            !parts.some((part) => part.startsWith(".") || hiddenFolders.includes(part))
          )
        }

        const resolve = Effect.fnUntraced(function* (given: string) {
          const refused = ToolError.make(`${given} is not for you to read; use a path that list_files gave you`)
          const absolute = path.resolve(realRoot, given)
          // Asked before the disk is, so that an answer does not tell what exists outside.
          if (!isAllowed(absolute)) return yield* refused
          const real = yield* fs.realPath(absolute)
          return isAllowed(real) ? real : yield* refused
        })

        const read = Effect.fnUntraced(
          function* (given: string) {
            const real = yield* resolve(given)
            const { size, type } = yield* fs.stat(real)
            if (type !== "File") return yield* ToolError.make(`${given} is not a file; list_files shows the files`)
            if (size > maxBytes) return yield* ToolError.make(`${given} is too large to read (${size} bytes)`)
            const text = yield* fs.readFileString(real)
            return text.includes("\0") ? yield* ToolError.make(`${given} is not a text file`) : text
          },
          (effect, given) =>
            Effect.catchTag(effect, "PlatformError", ({ reason }) =>
              ToolError.make(
                reason._tag === "NotFound"
                  ? `There is no file ${given}; list_files shows the files`
                  : `${given} can't be read (${reason._tag})`
              )
            )
        )

        const entry = Effect.fnUntraced(
          function* (relative: string) {
            const { size, type } = yield* fs.lstat(path.join(realRoot, relative))
            return type === "File" ? [{ path: relative, bytes: Number(size) }] : []
          },
          Effect.orElseSucceed(() => [])
        )

        const files = fs.glob("**/*", { root: realRoot, exclude: hiddenFolders.map((name) => `**/${name}`) }).pipe(
          Effect.flatMap((found) => Effect.forEach(found, entry, { concurrency: 16 })),
          Effect.map((found) => found.flat())
        )

        const report = Effect.fnUntraced(function* (markdown: string) {
          const partial = `${reportFile}.partial`
          yield* fs.writeFileString(partial, markdown).pipe(
            Effect.andThen(fs.rename(partial, reportFile)),
            Effect.onError(() => Effect.ignore(fs.remove(partial, { force: true })))
          )
          return reportFile
        }, Effect.uninterruptible)

        return { files, read, report }
      })
    )
}
