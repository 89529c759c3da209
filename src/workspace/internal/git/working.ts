/**
 * Makes a sandbox whose working folder is a folder of another sandbox, with the paths of the machine. Files outside of the
 * folder can be read as before, and are not changed: other agents work there.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"

/** Folds `.` and `..` of an absolute path. */
const fold = (path: string): string => {
  const parts: Array<string> = []
  for (const part of path.split("/")) {
    if (part === "..") parts.pop()
    else if (part !== "" && part !== ".") parts.push(part)
  }
  return `/${parts.join("/")}`
}

/** Paths that only the outer sandbox understands: of a home, and addresses. */
const isSpecial = (path: string): boolean => /^~|^file:/.test(path)

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** The paths that a change writes to. */
const targetsOf = (change: Backend.PlannedChange): ReadonlyArray<string> =>
  change.operation === "move" ? [change.from, change.to] : [change.path]

export const makeWorking = (sandbox: Sandbox.Service, paths: Backend.Paths, folder: string): Sandbox.Service => {
  const base = fold(folder)
  const locate = (path: string): string =>
    isSpecial(path) || path.startsWith("/") ? path : fold(`${base}/${path === "" ? "." : path}`)
  const isOwn = (path: string): boolean =>
    !isSpecial(path) && (isBelow(fold(path), base) || isBelow(fold(path), paths.scratch))
  /** Refuses a change outside of the folder, also by a link. */
  const guard = (operation: string, ...places: ReadonlyArray<string>): Effect.Effect<void, BackendError.BackendError> =>
    Effect.gen(function* () {
      const real = sandbox.realPaths === undefined ? places : yield* sandbox.realPaths(places)
      const index = places.findIndex((path, at) => !isOwn(path) || real[at] === undefined || !isOwn(real[at]))
      if (index < 0) return
      const detail = `you work in ${base}, and change nothing elsewhere`
      return yield* Effect.fail(BackendError.make(operation, places[index] ?? "", { _tag: "OutsideRoot" }, { detail }))
    })
  const changing = <A>(
    operation: string,
    places: ReadonlyArray<string>,
    work: Effect.Effect<A, BackendError.BackendError>
  ) => Effect.andThen(guard(operation, ...places), work)
  const { permit, realPaths } = sandbox
  return {
    ...sandbox,
    id: `${sandbox.id}:${base}`,
    paths: { ...paths, cwd: base },
    ls: (path) => sandbox.ls(locate(path)),
    read: (path, window) => sandbox.read(locate(path), window),
    write: (path, content, options) => changing("write", [locate(path)], sandbox.write(locate(path), content, options)),
    edit: (path, edits, options) => changing("edit", [locate(path)], sandbox.edit(locate(path), edits, options)),
    delete: (path, options) => changing("delete", [locate(path)], sandbox.delete(locate(path), options)),
    move: (from, to) => changing("move", [locate(from), locate(to)], sandbox.move(locate(from), locate(to))),
    grep: (query) => sandbox.grep({ ...query, path: locate(query.path ?? ".") }),
    glob: (query) => sandbox.glob({ ...query, path: locate(query.path ?? ".") }),
    upload: (files) =>
      Effect.forEach(files, (file): Effect.Effect<Backend.Transfer<Backend.WriteResult>> => {
        const path = locate(file.path)
        return Effect.matchEffect(guard("upload", path), {
          onFailure: (error) => Effect.succeed({ path, ok: false, error } as const),
          onSuccess: () =>
            Effect.map(
              sandbox.upload([{ ...file, path }]),
              ([one]) => one ?? { path, ok: false, error: BackendError.make("upload", path, { _tag: "Unavailable" }) }
            )
        })
      }),
    download: (all) => sandbox.download(all.map(locate)),
    ...(realPaths === undefined ? {} : { realPaths: (all: ReadonlyArray<string>) => realPaths(all.map(locate)) }),
    ...(permit === undefined
      ? {}
      : {
          permit: (plan: Backend.Plan) => {
            const changes = plan.changes.map((change) =>
              change.operation === "move"
                ? { ...change, from: locate(change.from), to: locate(change.to) }
                : { ...change, path: locate(change.path) }
            )
            return Effect.andThen(
              guard("change", ...changes.filter(({ operation }) => operation !== "read").flatMap(targetsOf)),
              permit({ ...plan, changes })
            )
          }
        }),
    execute: (command, options) => sandbox.execute(command, { ...options, cwd: locate(options?.cwd ?? ".") }),
    executeStream: (command, options) =>
      Stream.suspend(() => sandbox.executeStream(command, { ...options, cwd: locate(options?.cwd ?? ".") })),
    reaches: (path) => sandbox.reaches(locate(path))
  }
}
