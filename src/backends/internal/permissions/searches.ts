/** Listings and searches behind rules: they go on as if refused paths did not exist. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import type { Ask, Ruling } from "../../../core/Ruling.ts"
import * as Search from "../composite/search.ts"
import * as Path from "../files/path.ts"
import { at, authoriseOne, type Failing, type Guard, needOf, type Subject } from "./guard.ts"
import type { Rules } from "./model.ts"
import { decide, isRefusal, overlaps } from "./rules.ts"

/** Reasons that show whether there is something at a path. */
const showing: ReadonlySet<string> = new Set(["NotFound", "NotDirectory", "OutsideRoot", "PermissionDenied"])

const isOneOf = (approved: ReadonlyArray<{ readonly ruling: Ask }>, ruling: Ruling): boolean =>
  approved.some((access) => access.ruling === ruling)

/** Finds the visible paths: visible by their names and by their real places. Maps each to its real place. */
const findVisible = (
  guard: Guard,
  operation: string,
  paths: ReadonlyArray<string>,
  isVisible: (path: string) => boolean
): Failing<ReadonlyMap<string, string>> => {
  const named = paths.filter(isVisible)
  return Effect.map(
    guard.real(operation, named),
    (real) =>
      new Map(
        named.flatMap((path, index) => {
          const target = real[index] ?? path
          return target === path || isVisible(target) ? [[path, target] as const] : []
        })
      )
  )
}

export const searchesOf = (
  backend: Backend.Service,
  rules: Rules,
  guard: Guard
): Pick<Backend.Service, "ls" | "glob" | "grep" | "realPaths"> => {
  const mayBeNamed = (path: string): boolean => !isRefusal(decide(rules, "read", path))

  /** Checks that the rules allow to see a directory, or some path below it. */
  const mayBePassed = (path: string): boolean => !overlaps(rules, "read", path).every(isRefusal)

  const isAllVisible = (path: string): boolean => !overlaps(rules, "read", path).some(isRefusal)

  const keepVisible =
    (operation: string, isVisible: (path: string) => boolean): Search.Keep =>
    (paths) =>
      Effect.map(findVisible(guard, operation, paths, isVisible), (visible) => new Set(visible.keys()))

  /** At a refused path, returns `nothing` for a failure that would show whether something is there. */
  const orNothing =
    <A>(operation: string, path: string, nothing: A) =>
    (effect: Failing<A>): Failing<A> =>
      Effect.flatMap(findVisible(guard, operation, [path], mayBeNamed), (named) =>
        named.has(path)
          ? effect
          : Effect.catch(effect, (error) =>
              showing.has(error.reason._tag) ? Effect.succeed(nothing) : Effect.fail(error)
            )
      )

  const search = (inputPath: string, path: string, looking: "names" | "contents"): Subject => ({
    needs: [needOf("read", inputPath, path, { looking })]
  })

  const ls = (inputPath: string): Failing<Backend.Listing> =>
    at(guard, "ls", inputPath, (path) =>
      authoriseOne(guard, { name: "ls" }, search(inputPath, path, "names"), () =>
        Effect.gen(function* () {
          const listing = yield* backend.ls(inputPath)
          const pathsOf = (isFolder: boolean) =>
            listing.entries.flatMap((entry) => ((entry.kind === "directory") === isFolder ? [entry.path] : []))
          const named = yield* findVisible(guard, "ls", pathsOf(false), mayBeNamed)
          const passed = yield* findVisible(guard, "ls", pathsOf(true), mayBePassed)
          const entries = listing.entries.flatMap((entry): ReadonlyArray<Backend.Entry> => {
            if (entry.kind !== "directory") return named.has(entry.path) ? [entry] : []
            const target = passed.get(entry.path)
            if (target === undefined) return []
            // The size and time of a directory change with its contents.
            return isAllVisible(entry.path) && isAllVisible(target) ? [entry] : [{ path: entry.path, kind: entry.kind }]
          })
          return { ...listing, entries }
        }).pipe(orNothing<Backend.Listing>("ls", path, { entries: [] }))
      )
    )

  const glob = (query: Backend.GlobQuery): Failing<Backend.Listing> =>
    at(guard, "glob", query.path ?? ".", (path) =>
      authoriseOne(guard, { name: "glob" }, search(query.path ?? ".", path, "names"), () =>
        Search.glob(backend, query, keepVisible("glob", mayBeNamed)).pipe(
          orNothing<Backend.Listing>("glob", path, { entries: [] })
        )
      )
    )

  const grep = (query: Backend.GrepQuery): Failing<Backend.GrepResult> =>
    at(guard, "grep", query.path ?? ".", (path) =>
      authoriseOne(
        guard,
        { name: "grep", action: { operation: "grep", query } },
        search(query.path ?? ".", path, "contents"),
        (approved) => {
          const mayBeRead = (file: string): boolean => {
            const ruling = decide(rules, "read", file)
            return ruling._tag === "Allow" || isOneOf(approved, ruling)
          }
          return Search.grep(backend, query, keepVisible("grep", mayBeRead)).pipe(
            orNothing<Backend.GrepResult>("grep", path, { files: [] })
          )
        }
      )
    )

  const realPaths = (paths: ReadonlyArray<string>): Failing<ReadonlyArray<string | undefined>> =>
    Effect.gen(function* () {
      const normal = paths.map((path) => Result.getOrUndefined(Path.resolve("realPaths", path, backend.paths)))
      const named = normal.filter((path) => path !== undefined).filter(mayBePassed)
      const real = yield* guard.real("realPaths", named)
      const targets = new Map(named.map((path, index) => [path, real[index]]))
      return normal.map((path) => {
        const target = path === undefined ? undefined : targets.get(path)
        return target !== undefined && mayBePassed(target) ? target : undefined
      })
    })

  return { ls, glob, grep, realPaths: backend.realPaths === undefined ? undefined : realPaths }
}
