/**
 * The files of a machine, in some folders of it: paths are the machine's own, and relative ones count from the working
 * folder.
 *
 * It is one jail at the root of the machine, whose bounds are the folders. A second jail, with the folders that may be
 * changed, makes all changes. So a folder that is swapped for a link is harmless here too.
 */
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import * as Files from "../local/files.ts"
import * as Jail from "../local/jail.ts"
import { findCwd, findFolders, type Folders } from "./folders.ts"
import type { Folder, Options } from "./options.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The files, with the operations that commands need. */
export interface HostFiles {
  readonly jail: Jail.Jail
  readonly paths: Backend.Paths
  /** The folders that hold now, by their real paths. */
  readonly folders: () => ReadonlyArray<Folder>
  readonly service: Backend.Service
  /** Runs something at a path of the machine. Failures name a remedy. */
  readonly at: <A, R>(
    operation: string,
    given: string,
    run: (path: string) => Effect.Effect<A, BackendError.BackendError, R>
  ) => Effect.Effect<A, BackendError.BackendError, R>
}

const unchanged: Backend.Permit = (work) => work

/** Operations on a link itself, not on its target. */
const entries: ReadonlySet<string> = new Set(["delete", "move"])

const changes: ReadonlySet<string> = new Set(["write", "edit", "delete", "move", "upload", "patch"])

const unavailable = (path: string) => (cause: unknown) =>
  BackendError.make("open", path, { _tag: "Unavailable" }, { detail: "the folder can't be made", cause })

/** Makes the folder for files that nobody asked for. */
const makeScratch = (inputPath: string | undefined): Effect.Effect<string, BackendError.BackendError, Scope.Scope> =>
  inputPath === undefined
    ? Effect.acquireRelease(
        Effect.tryPromise({
          try: () => mkdtemp(join(tmpdir(), "deepagents-")).then((path) => realpath(path)),
          catch: unavailable(tmpdir())
        }),
        (path) => Effect.ignore(Effect.tryPromise(() => rm(path, { recursive: true, force: true })))
      )
    : Effect.tryPromise({
        try: () => mkdir(inputPath, { recursive: true, mode: 0o700 }).then(() => realpath(inputPath)),
        catch: unavailable(inputPath)
      })

/** Splits a pattern that begins at the root of the machine: the folder to begin at, and the rest. */
const splitPattern = (pattern: string, home: string): readonly [folder: string, rest: string] | undefined => {
  const whole = pattern.startsWith("~/") ? home + pattern.slice(1) : pattern
  if (!whole.startsWith("/")) return undefined
  const names = whole.split("/").filter((name) => name !== "")
  const wild = names.findIndex((name, index) => index === names.length - 1 || /[*?[{\\]/.test(name))
  return wild < 1 ? undefined : [`/${names.slice(0, wild).join("/")}`, `./${names.slice(wild).join("/")}`]
}

/** Opens the folders of a machine. */
// oxlint-disable-next-line eslint/max-lines-per-function -- functions over the folders of one machine
export const make = (options: Options): Effect.Effect<HostFiles, BackendError.BackendError, Scope.Scope> =>
  // oxlint-disable-next-line eslint/max-lines-per-function -- functions over the folders of one machine
  Effect.gen(function* () {
    const { advise, folders: given = [] } = options
    yield* Files.checkSystem(options.cwd)
    const cwd = yield* findCwd(options.cwd)
    const scratch = yield* makeScratch(options.scratch)
    const paths: Backend.Paths = { cwd, home: homedir(), scratch }
    const own: ReadonlyArray<Folder> = [{ path: options.cwd, access: "write" }]
    const scratchFolders: ReadonlyArray<Folder> = [{ path: scratch, access: "write" }]
    const extraFolders: Effect.Effect<ReadonlyArray<Folder>> = Effect.isEffect(given) ? given : Effect.succeed(given)
    const find = (more: ReadonlyArray<Folder>, isFirst: boolean) =>
      findFolders([...own, ...more, ...scratchFolders], paths, isFirst)

    let current = yield* extraFolders
    let folders: Folders = yield* find(current, true)
    let [readable, changeable] = [folders.bounds("read"), folders.bounds("write")]
    const refresh = Effect.flatMap(extraFolders, (now) =>
      now === current
        ? Effect.void
        : Effect.map(find(now, false), (next) => {
            current = now
            folders = next
            readable = next.bounds("read")
            changeable = next.bounds("write")
          })
    )

    const makeJail = (bounds: () => Jail.Bounds) =>
      Jail.makeWithin({
        has: (real) => bounds().has(real),
        leads: (path) => bounds().leads(path),
        folderOf: (real) => bounds().folderOf(real)
      })
    const jail = yield* makeJail(() => readable)
    const changed = yield* makeJail(() => changeable)
    const files = yield* Files.inJail(jail, changed, options)

    const isThere = (path: string): Effect.Effect<boolean> =>
      Jail.locate(jail, Path.segments(path), true).pipe(
        Effect.map(({ stats }) => stats !== undefined),
        Effect.orElseSucceed(() => false)
      )

    /** The real path of an entry: its folder without links, and its own name. */
    const realEntry = (path: string): Effect.Effect<string | undefined> =>
      Jail.locate(jail, Path.segments(Path.parent(path)), true).pipe(
        Effect.map(({ missing, names }) => Path.join(`/${[...names, ...missing].join("/")}`, Path.basename(path))),
        Effect.orElseSucceed(() => undefined)
      )

    const realTarget = (path: string): Effect.Effect<string | undefined> =>
      Jail.locate(jail, Path.segments(path), true).pipe(
        Effect.map(({ missing, names }) => `/${[...names, ...missing].join("/")}`),
        Effect.orElseSucceed(() => undefined)
      )

    /** Explains a refusal: the path is outside, or may only be read. */
    const explain = Effect.fnUntraced(function* (
      operation: string,
      inputPath: string,
      path: string,
      error: BackendError.BackendError
    ) {
      if (error.reason._tag !== "OutsideRoot" || error.reason.cwd !== undefined) {
        return error.path === path ? BackendError.at(error, error.operation, inputPath) : error
      }
      const isChange = changes.has(operation)
      const real = yield* entries.has(operation) ? realEntry(path) : realTarget(path)
      const isReadable = isChange && real !== undefined && folders.accessOf(real) === "read"
      const advice = advise?.({ path, access: isChange ? "write" : "read", isReadable })
      if (isReadable) {
        const detail = ["this may be read, and not changed", ...(advice === undefined ? [] : [advice])].join("; ")
        return BackendError.make(error.operation, inputPath, { _tag: "PermissionDenied" }, { detail })
      }
      const below = Path.join(cwd, path.slice(1))
      const isMeant = inputPath.startsWith("/") && (yield* isThere(below))
      const detail = [...(isMeant ? [`did you mean ${below}?`] : []), ...(advice === undefined ? [] : [advice])]
      return BackendError.make(
        error.operation,
        inputPath,
        { _tag: "OutsideRoot", cwd },
        detail.length === 0 ? {} : { detail: detail.join(" ") }
      )
    })

    const at: HostFiles["at"] = (operation, inputPath, run) =>
      Effect.gen(function* () {
        const path = yield* Effect.fromResult(Path.resolve(operation, inputPath, paths))
        yield* refresh
        return yield* Effect.catch(run(path), (error) =>
          Effect.flatMap(explain(operation, inputPath, path, error), Effect.fail)
        )
      })

    /** Fails for a folder of the list, and for a folder above it. */
    const checkWhole = (operation: string, inputPath: string, path: string): Failing<void> =>
      Effect.gen(function* () {
        const real = (yield* realEntry(path)) ?? path
        if (folders.accessOf(real) === undefined || !folders.holdsOne(real)) return
        const problem = `a folder that the agent works in is not ${operation === "move" ? "moved or replaced" : "deleted"}`
        return yield* BackendError.make(operation, inputPath, { _tag: "InvalidPath", problem })
      })

    const transferred = <I, A>(
      operation: string,
      items: ReadonlyArray<I>,
      pathOf: (item: I) => string,
      run: (items: ReadonlyArray<I>, paths: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>
    ): Effect.Effect<ReadonlyArray<Backend.Transfer<A>>> =>
      Effect.gen(function* () {
        yield* Effect.ignore(refresh)
        const resolved = items.map((item) => Path.resolve(operation, pathOf(item), paths))
        const valid = resolved.map(Result.isSuccess)
        const outcomes = yield* run(
          items.filter((_, index) => valid[index]),
          resolved.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
        )
        let next = 0
        return yield* Effect.forEach(
          items,
          Effect.fnUntraced(function* (item, index) {
            const one = resolved[index]
            const inputPath = pathOf(item)
            if (one === undefined || Result.isFailure(one)) {
              const error = one?.failure ?? BackendError.make(operation, inputPath, { _tag: "Unavailable" })
              return { path: inputPath, ok: false as const, error }
            }
            const outcome = outcomes[next++]
            if (outcome?.ok === true) return outcome
            const error = outcome?.error ?? BackendError.make(operation, inputPath, { _tag: "Unavailable" })
            return {
              path: one.success,
              ok: false as const,
              error: yield* explain(operation, inputPath, one.success, error)
            }
          })
        )
      })

    const normal = (path: string): string => Result.getOrElse(Path.resolve("patch", path, paths), () => path)

    const service: Backend.Service = {
      onHost: true,
      paths,
      ls: (path) => at("ls", path, files.ls),
      read: (path, window) => at("read", path, (real) => files.read(real, window)),
      write: (path, content, how) => at("write", path, (real) => files.write(real, content, how)),
      edit: (path, replacements, how) => at("edit", path, (real) => files.edit(real, replacements, how)),
      delete: (path, how) =>
        at("delete", path, (real) => Effect.andThen(checkWhole("delete", path, real), files.delete(real, how))),
      move: (from, to) =>
        at("move", from, (source) =>
          Effect.gen(function* () {
            const target = yield* Effect.fromResult(Path.resolve("move", to, paths))
            yield* checkWhole("move", from, source)
            yield* checkWhole("move", to, target)
            // A failure of the target is told of it.
            const isTarget = folders.accessOf((yield* realEntry(target)) ?? "") !== "write"
            const moved = files.move(source, target)
            yield* isTarget
              ? Effect.catch(moved, (error) => Effect.flatMap(explain("move", to, target, error), Effect.fail))
              : moved
          })
        ),
      grep: (query) => at("grep", query.path ?? ".", (path) => files.grep({ ...query, path })),
      glob: (query) => {
        const split = query.path === undefined ? splitPattern(query.pattern, paths.home) : undefined
        const [folder, pattern] = split ?? [query.path ?? ".", query.pattern]
        return at("glob", folder, (path) => files.glob({ ...query, pattern, path }))
      },
      upload: (all) =>
        transferred(
          "upload",
          all,
          ({ path }) => path,
          (items, real) => files.upload(items.map(({ content }, index) => ({ content, path: real[index] ?? "" })))
        ),
      download: (all) =>
        transferred(
          "download",
          all,
          (path) => path,
          (_, real) => files.download(real)
        ),
      realPaths: (all) =>
        Effect.andThen(
          refresh,
          files.realPaths?.(all.map((path) => normal(path))) ?? Effect.succeed(all.map(() => undefined))
        ),
      permit: (plan) =>
        Effect.andThen(
          refresh,
          files.permit?.({
            ...plan,
            changes: plan.changes.map((change) =>
              change.operation === "move"
                ? { ...change, from: normal(change.from), to: normal(change.to) }
                : { ...change, path: normal(change.path) }
            )
          }) ?? Effect.succeed(unchanged)
        )
    }
    return { jail, paths, folders: () => folders.list, service, at }
  })
