/**
 * Makes a sandbox whose root is a folder of another sandbox. It separates the work of several agents, but commands can
 * leave the folder.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"

/** Returns true for paths that the outer sandbox must reject itself. */
const isSpecial = (path: string): boolean => /^~|^\/+~|^\.\/+~|^[A-Za-z]:(?:\/|$)/.test(path)

const segments = (path: string): ReadonlyArray<string> => path.split("/").filter((part) => part !== "" && part !== ".")

export const makeRooted = (sandbox: Sandbox.Service, folder: string): Sandbox.Service => {
  const base = `/${segments(folder).join("/")}`
  const toOuter = (path: string): string =>
    isSpecial(path) || segments(path).includes("..") ? path : `${base}/${segments(path).join("/")}`
  const toInner = (path: string): string => (path.startsWith(`${base}/`) ? path.slice(base.length) : "/")
  const convertError =
    (path: string) =>
    (error: BackendError.BackendError): BackendError.BackendError =>
      BackendError.make(error.operation, path, error.reason, error)
  const runAt = <A>(path: string, work: (path: string) => Effect.Effect<A, BackendError.BackendError>) =>
    // A path with `..` would lead out of the folder.
    segments(path).includes("..")
      ? Effect.fail(BackendError.make("open", path, { _tag: "OutsideRoot" }))
      : Effect.mapError(work(toOuter(path)), convertError(path))
  const relocate = <A extends { readonly path: string }>(value: A): A => ({ ...value, path: toInner(value.path) })
  const runOnFile = <A extends { readonly path: string }>(
    path: string,
    work: (path: string) => Effect.Effect<A, BackendError.BackendError>
  ) => Effect.map(runAt(path, work), relocate)
  const relocateListing = (listing: Backend.Listing): Backend.Listing => ({
    ...listing,
    entries: listing.entries.map(relocate)
  })
  const transferEach = <A, B>(
    items: ReadonlyArray<A>,
    pathOf: (item: A) => string,
    work: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<Backend.Transfer<B>>>,
    map: (value: B) => B
  ): Effect.Effect<ReadonlyArray<Backend.Transfer<B>>> =>
    Effect.forEach(items, (item) =>
      runAt(pathOf(item), () => work([item]).pipe(Effect.flatMap(([one]) => unwrapTransfer(one)))).pipe(
        Effect.match({
          onSuccess: (value): Backend.Transfer<B> => ({ path: pathOf(item), ok: true, value: map(value) }),
          onFailure: (error): Backend.Transfer<B> => ({ path: pathOf(item), ok: false, error })
        })
      )
    )
  const relocateChange = (change: Backend.PlannedChange): Backend.PlannedChange =>
    change.operation === "move"
      ? { ...change, from: toOuter(change.from), to: toOuter(change.to) }
      : { ...change, path: toOuter(change.path) }
  const unwrapTransfer = <B>(one: Backend.Transfer<B> | undefined): Effect.Effect<B, BackendError.BackendError> =>
    one === undefined
      ? Effect.fail(BackendError.make("transfer", base, { _tag: "Unavailable" }))
      : one.ok
        ? Effect.succeed(one.value)
        : Effect.fail(one.error)
  const { permit, realPaths } = sandbox
  return {
    id: `${sandbox.id}${base}`,
    ls: (path) => Effect.map(runAt(path, sandbox.ls), relocateListing),
    read: (path, window) => runOnFile(path, (at) => sandbox.read(at, window)),
    write: (path, content, options) => runOnFile(path, (at) => sandbox.write(at, content, options)),
    edit: (path, edits, options) => runOnFile(path, (at) => sandbox.edit(at, edits, options)),
    delete: (path, options) => runAt(path, (at) => sandbox.delete(at, options)),
    move: (from, to) => runAt(from, (start) => runAt(to, (end) => sandbox.move(start, end))),
    grep: (query) =>
      Effect.map(
        runAt(query.path ?? "/", (path) => sandbox.grep({ ...query, path })),
        (result) => ({
          ...result,
          files: result.files.map(relocate)
        })
      ),
    glob: (query) =>
      Effect.map(
        runAt(query.path ?? "/", (path) => sandbox.glob({ ...query, path })),
        relocateListing
      ),
    upload: (files) =>
      transferEach(
        files,
        ({ path }) => path,
        (some) => sandbox.upload(some.map(({ content, path }) => ({ path: toOuter(path), content }))),
        relocate
      ),
    download: (paths) =>
      transferEach(
        paths,
        (path) => path,
        (some) => sandbox.download(some.map(toOuter)),
        (bytes) => bytes
      ),
    ...(realPaths === undefined
      ? {}
      : {
          realPaths: (paths: ReadonlyArray<string>) =>
            Effect.map(realPaths(paths.map(toOuter)), (all) =>
              all.map((path) => (path === base || path?.startsWith(`${base}/`) === true ? toInner(path) : undefined))
            )
        }),
    ...(permit === undefined
      ? {}
      : { permit: (plan: Backend.Plan) => permit({ ...plan, changes: plan.changes.map(relocateChange) }) }),
    ...(sandbox.onHost === undefined ? {} : { onHost: sandbox.onHost }),
    execute: (command, options) => runAt(options?.cwd ?? "/", (cwd) => sandbox.execute(command, { ...options, cwd })),
    executeStream: (command, options) => {
      const cwd = options?.cwd ?? "/"
      return segments(cwd).includes("..")
        ? Stream.fail(BackendError.make("execute", cwd, { _tag: "OutsideRoot" }))
        : sandbox.executeStream(command, { ...options, cwd: toOuter(cwd) })
    },
    reaches: (path) => sandbox.reaches(toOuter(path))
  }
}
