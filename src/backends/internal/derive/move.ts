/**
 * The derived operations that take files away: `delete` and `move`, of a directory by all that is in it. Links are
 * taken as they are, never followed.
 */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { utf8Length } from "../text/utf8.ts"
import type { Child } from "./primitives.ts"
import { checkWay, fail, type Failing, find, on, type Source, type Target } from "./target.ts"

const isFolder = (what: Omit<Child, "name">): boolean => what.kind === "directory" && what.isLink !== true

/** A file that others took away meanwhile is no failure, nor is a directory that went with its last file. */
const unlessGone = (effect: Failing<void>): Failing<void> =>
  Effect.catchReason(effect, "BackendError", "NotFound", () => Effect.void)

/**
 * Does one thing to many files, by `step`. A failure after the first of them says that something was done: the caller
 * must know.
 */
const inSteps = (
  target: Target,
  done: string,
  run: (step: (effect: Failing<void>) => Failing<void>) => Failing<void>
): Failing<void> =>
  Effect.suspend(() => {
    let any = false
    const note = Effect.sync(() => {
      any = true
    })
    return Effect.catch(
      run((effect) => Effect.andThen(effect, note)),
      (error) => {
        if (!any) return Effect.fail(error)
        const detail = `some of it was ${done} already, then: ${error.message}`
        const unavailable = { _tag: "Unavailable" as const }
        return Effect.fail(BackendError.make(target.operation, error.path, unavailable, { detail, cause: error }))
      }
    )
  })

const removeAll = (source: Source, target: Target): Failing<void> =>
  inSteps(target, "deleted", (step) => {
    const { list, remove } = source.primitives
    const clear = (folder: string): Failing<void> =>
      Effect.gen(function* () {
        for (const child of yield* list(folder)) {
          const path = Path.join(folder, child.name)
          yield* unlessGone(isFolder(child) ? clear(path) : step(remove(path)))
        }
        yield* unlessGone(step(remove(folder)))
      })
    return clear(target.real)
  })

export const remove =
  (source: Source): Backend.Service["delete"] =>
  (path, options) =>
    on(
      source,
      "delete",
      path,
      (target) => {
        if (target.normal === "/") return fail(target, { _tag: "InvalidPath", problem: "the root can't be deleted" })
        return Effect.gen(function* () {
          const stat = yield* find(source, target)
          if (!isFolder(stat)) return yield* source.primitives.remove(target.real)
          if (options?.recursive === true) return yield* removeAll(source, target)
          if ((yield* source.primitives.list(target.real)).length > 0)
            return yield* fail(
              target,
              { _tag: "IsDirectory" },
              "it is not empty; set recursive to delete all that is in it"
            )
          return yield* source.primitives.remove(target.real)
        }).pipe(source.locks.hold([target.real]))
      },
      true
    )

/** All files and links in a directory, as paths within it. */
const filesIn = (source: Source, folder: string): Failing<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const files: Array<string> = []
    const open = [""]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const child of yield* source.primitives.list(Path.join(folder, at))) {
        const inside = at === "" ? child.name : Path.join(at, child.name)
        if (isFolder(child)) open.push(inside)
        else files.push(inside)
      }
    }
    return files
  })

/** Removes a directory after its files were moved. New files, and their directories, stay. */
const prune = (source: Source, folder: string): Failing<void> =>
  Effect.gen(function* () {
    const { list, remove } = source.primitives
    for (const child of yield* list(folder)) {
      if (isFolder(child)) yield* unlessGone(prune(source, Path.join(folder, child.name)))
    }
    if ((yield* list(folder)).length === 0) yield* remove(folder)
  })

const moveAll = (source: Source, target: Target, to: string): Failing<void> =>
  Effect.gen(function* () {
    const { rename, renameDirectory } = source.primitives
    if (renameDirectory !== undefined) return yield* renameDirectory(target.real, to)
    const files = yield* filesIn(source, target.real)
    if (files.some((file) => utf8Length(to) + 1 + utf8Length(file) > Path.maxPathBytes)) {
      const problem = `a file in it would have a path longer than ${Path.maxPathBytes} bytes`
      return yield* fail(target, { _tag: "InvalidPath", problem })
    }
    yield* inSteps(target, "moved", (step) =>
      Effect.forEach(files, (file) => step(rename(Path.join(target.real, file), Path.join(to, file))), {
        discard: true
      })
    )
    return yield* unlessGone(prune(source, target.real))
  })

export const move =
  (source: Source): Backend.Service["move"] =>
  (from, to) =>
    on(
      source,
      "move",
      from,
      (origin) =>
        on(
          source,
          "move",
          to,
          (target) => {
            const invalid = (at: Target, problem: string) => fail(at, { _tag: "InvalidPath", problem })
            if (origin.normal === "/") return invalid(origin, "the root can't be moved")
            return Effect.gen(function* () {
              const stat = yield* find(source, origin)
              if (Path.isWithin(target.real, origin.real))
                return yield* invalid(target, "it can't be moved onto or into itself")
              if ((yield* source.primitives.stat(target.real)) !== undefined)
                return yield* fail(target, { _tag: "AlreadyExists" })
              yield* checkWay(source, target)
              return yield* isFolder(stat)
                ? moveAll(source, origin, target.real)
                : source.primitives.rename(origin.real, target.real)
            }).pipe(source.locks.hold([origin.real, target.real]))
          },
          true
        ),
      true
    )
