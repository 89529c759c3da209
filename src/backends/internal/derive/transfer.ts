/**
 * The derived operations on many files: `upload` and `download`, one after the other, each with an outcome of its own.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as Path from "../files/path.ts"
import { writeFile } from "./files.ts"
import { checkSize, type Failing, findFile, on, type Source, toBytes } from "./target.ts"

/** The path of an outcome: normalised, or as written for an invalid path. */
export const nameOf = (operation: string, inputPath: string): string =>
  Result.getOrElse(Path.normalize(operation, inputPath), () => inputPath)

const outcome = <A>(operation: string, inputPath: string, effect: Failing<A>): Effect.Effect<Backend.Transfer<A>> => {
  const path = nameOf(operation, inputPath)
  return Effect.match(effect, {
    onSuccess: (value) => ({ path, ok: true as const, value }),
    onFailure: (error) => ({ path, ok: false as const, error })
  })
}

export const upload =
  (source: Source): Backend.Service["upload"] =>
  (files) =>
    Effect.forEach(files, ({ content, path }) =>
      outcome(
        "upload",
        path,
        on(source, "upload", path, (target) => writeFile(source, target, content))
      )
    )

export const download =
  (source: Source): Backend.Service["download"] =>
  (paths) =>
    Effect.forEach(paths, (path) =>
      outcome(
        "download",
        path,
        on(
          source,
          "download",
          path,
          Effect.fnUntraced(function* (target) {
            const stat = yield* findFile(source, target)
            yield* checkSize(source, target, stat.size ?? 0)
            const content = yield* source.primitives.read(target.real)
            // The caller gets a copy, because the backend keeps the bytes.
            const bytes = typeof content === "string" ? toBytes(content) : content.slice()
            yield* checkSize(source, target, bytes.length)
            return bytes
          })
        )
      )
    )
