/**
 * A folder of a sandbox as a sandbox: paths are from the folder, and commands begin in it. It parts the work of several
 * agents; it keeps no command from going elsewhere.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"

/** A path that the rule refuses must not become a name below the folder. */
const isSpecial = (path: string): boolean => /^~|^\/+~|^\.\/+~|^[A-Za-z]:(?:\/|$)/.test(path)

const segments = (path: string): ReadonlyArray<string> => path.split("/").filter((part) => part !== "" && part !== ".")

export const rooted = (sandbox: Sandbox.Service, folder: string): Sandbox.Service => {
  const base = `/${segments(folder).join("/")}`
  const into = (path: string): string =>
    isSpecial(path) || segments(path).includes("..") ? path : `${base}/${segments(path).join("/")}`
  const out = (path: string): string => (path.startsWith(`${base}/`) ? path.slice(base.length) : "/")
  const failed =
    (given: string) =>
    (error: BackendError.BackendError): BackendError.BackendError =>
      BackendError.make(error.operation, given, error.reason, error)
  const on = <A>(path: string, work: (path: string) => Effect.Effect<A, BackendError.BackendError>) =>
    // A path with `..` would lead into the sandbox around the folder.
    segments(path).includes("..")
      ? Effect.fail(BackendError.make("open", path, { _tag: "OutsideRoot" }))
      : Effect.mapError(work(into(path)), failed(path))
  const placed = <A extends { readonly path: string }>(value: A): A => ({ ...value, path: out(value.path) })
  const listed = (listing: Backend.Listing): Backend.Listing => ({ ...listing, entries: listing.entries.map(placed) })
  const each = <A, B>(
    items: ReadonlyArray<A>,
    pathOf: (item: A) => string,
    work: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<Backend.Transfer<B>>>,
    map: (value: B) => B
  ): Effect.Effect<ReadonlyArray<Backend.Transfer<B>>> =>
    Effect.forEach(items, (item) =>
      on(pathOf(item), () => work([item]).pipe(Effect.flatMap(([one]) => transferred(one)))).pipe(
        Effect.match({
          onSuccess: (value): Backend.Transfer<B> => ({ path: pathOf(item), ok: true, value: map(value) }),
          onFailure: (error): Backend.Transfer<B> => ({ path: pathOf(item), ok: false, error })
        })
      )
    )
  const planned = (change: Backend.PlannedChange): Backend.PlannedChange =>
    change.operation === "move"
      ? { ...change, from: into(change.from), to: into(change.to) }
      : { ...change, path: into(change.path) }
  const transferred = <B>(one: Backend.Transfer<B> | undefined): Effect.Effect<B, BackendError.BackendError> =>
    one === undefined
      ? Effect.fail(BackendError.make("transfer", base, { _tag: "Unavailable" }))
      : one.ok
        ? Effect.succeed(one.value)
        : Effect.fail(one.error)
  const { permit, realPaths } = sandbox
  return {
    id: `${sandbox.id}${base}`,
    ls: (path) => Effect.map(on(path, sandbox.ls), listed),
    read: (path, window) =>
      Effect.map(
        on(path, (at) => sandbox.read(at, window)),
        placed
      ),
    write: (path, content, options) =>
      Effect.map(
        on(path, (at) => sandbox.write(at, content, options)),
        placed
      ),
    edit: (path, edits, options) =>
      Effect.map(
        on(path, (at) => sandbox.edit(at, edits, options)),
        placed
      ),
    delete: (path, options) => on(path, (at) => sandbox.delete(at, options)),
    move: (from, to) => on(from, (start) => on(to, (end) => sandbox.move(start, end))),
    grep: (query) =>
      Effect.map(
        on(query.path ?? "/", (path) => sandbox.grep({ ...query, path })),
        (result) => ({
          ...result,
          files: result.files.map(placed)
        })
      ),
    glob: (query) =>
      Effect.map(
        on(query.path ?? "/", (path) => sandbox.glob({ ...query, path })),
        listed
      ),
    upload: (files) =>
      each(
        files,
        ({ path }) => path,
        (some) => sandbox.upload(some.map(({ content, path }) => ({ path: into(path), content }))),
        placed
      ),
    download: (paths) =>
      each(
        paths,
        (path) => path,
        (some) => sandbox.download(some.map(into)),
        (bytes) => bytes
      ),
    ...(realPaths === undefined
      ? {}
      : {
          realPaths: (paths: ReadonlyArray<string>) =>
            Effect.map(realPaths(paths.map(into)), (all) =>
              all.map((path) => (path === base || path?.startsWith(`${base}/`) === true ? out(path) : undefined))
            )
        }),
    ...(permit === undefined
      ? {}
      : { permit: (plan: Backend.Plan) => permit({ ...plan, changes: plan.changes.map(planned) }) }),
    ...(sandbox.onHost === undefined ? {} : { onHost: sandbox.onHost }),
    execute: (command, options) => on(options?.cwd ?? "/", (cwd) => sandbox.execute(command, { ...options, cwd })),
    executeStream: (command, options) => {
      const cwd = options?.cwd ?? "/"
      return segments(cwd).includes("..")
        ? Stream.fail(BackendError.make("execute", cwd, { _tag: "OutsideRoot" }))
        : sandbox.executeStream(command, { ...options, cwd: into(cwd) })
    },
    reaches: (path) => sandbox.reaches(into(path))
  }
}
