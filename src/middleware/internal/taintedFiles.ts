/**
 * A backend that remembers which files were written with what came from outside.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type * as Backend from "../../core/Backend.ts"
import * as BackendError from "../../core/BackendError.ts"

/** The file of the labels. */
const labelsFile = "/.deepagents-labels.json"

const Label = Schema.Struct({ isDirty: Schema.Boolean, secrets: Schema.Array(Schema.String) })
export type Label = typeof Label.Type

const Labels = Schema.fromJsonString(Schema.Record(Schema.String, Label))
type Known = { readonly [path: string]: Label }

const decode = Schema.decodeUnknownResult(Labels)
const encode = Schema.encodeSync(Labels)

/** The label where nobody knows. */
const unknown: Label = { isDirty: true, secrets: [] }

/** The marks of the run that a fiber works for, and a way to add to them. */
export interface Marks {
  readonly isMarked: Effect.Effect<Label | undefined>
  readonly mark: (path: string, label: Label) => Effect.Effect<void>
}

const normal = (path: string): string =>
  `/${path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/")}`

/** Tells whether it is the file of the labels, also where the case of letters does not count. */
const isLabels = (path: string): boolean => normal(path).toUpperCase() === labelsFile.toUpperCase()

const isAtOrBelow = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`)

const both = (left: Label | undefined, right: Label): Label =>
  left === undefined
    ? right
    : { isDirty: left.isDirty || right.isDirty, secrets: [...new Set([...left.secrets, ...right.secrets])] }

const ancestors = (path: string): ReadonlyArray<string> => {
  const names = path.split("/").slice(1, -1)
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`).reverse()
}

/** The key of the name of a folder, which says nothing of what is in it. */
const nameOf = (folder: string): string => `${folder}/`

const isIn = (label: Label, known: Label | undefined): boolean =>
  known !== undefined &&
  (known.isDirty || !label.isDirty) &&
  label.secrets.every((secret) => known.secrets.includes(secret))

const attempts = 100

/** Puts labels before a backend. */
export const labelled = (backend: Backend.Service, { isMarked, mark }: Marks): Backend.Service => {
  const lock = Semaphore.makeUnsafe(1)

  /** Labels that can't be read have been tampered with: everything counts as from outside then. */
  const read: Effect.Effect<Known, BackendError.BackendError> = Effect.flatMap(
    backend.download([labelsFile]),
    ([file]) => {
      if (file === undefined) return Effect.succeed({})
      if (!file.ok) return file.error.reason._tag === "NotFound" ? Effect.succeed({}) : Effect.fail(file.error)
      return Effect.succeed(Result.getOrElse(decode(new TextDecoder().decode(file.value)), () => ({ "/": unknown })))
    }
  )

  const version = backend.read(labelsFile, { limit: 1 }).pipe(
    Effect.map((file): string | undefined => file.version),
    Effect.catchIf(
      ({ reason }) => reason._tag === "NotFound",
      () => Effect.undefined
    )
  )

  /** Adds labels; of two processes that do so at once, one looks again. */
  const add = (labels: (known: Known) => Known): Effect.Effect<void, BackendError.BackendError> =>
    lock.withPermits(1)(
      Effect.gen(function* () {
        for (let attempt = 1; ; attempt++) {
          // Asked for first: whatever is written from here on is a conflict.
          const before = yield* version
          const known = yield* read
          const added = Object.entries(labels(known)).filter(([path, label]) => !isIn(label, known[path]))
          if (added.length === 0) return
          const next = {
            ...known,
            ...Object.fromEntries(added.map(([path, label]) => [path, both(known[path], label)]))
          }
          const written = yield* Effect.result(
            backend.write(labelsFile, encode(next), before === undefined ? { create: true } : { version: before })
          )
          if (Result.isSuccess(written)) return
          const { _tag } = written.failure.reason
          if (attempt === attempts || (_tag !== "Conflict" && _tag !== "AlreadyExists")) return yield* written.failure
        }
      })
    )

  /** The paths as they are given, and as they are when links are followed and names are as they are stored. */
  const places = (paths: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>, BackendError.BackendError> => {
    const given = paths.map(normal)
    if (backend.realPaths === undefined) return Effect.succeed(given)
    return Effect.map(backend.realPaths(paths), (real) => [
      ...new Set([...given, ...real.flatMap((path) => (path === undefined ? [] : [path]))])
    ])
  }

  const closed = (operation: string, paths: ReadonlyArray<string>) =>
    paths.some(isLabels)
      ? Effect.fail(BackendError.make(operation, labelsFile, { _tag: "PermissionDenied" }))
      : Effect.void

  /** The folders that will be made for a file. */
  const missing = (path: string) =>
    Effect.gen(function* () {
      const made: Array<string> = []
      for (const folder of ancestors(path)) {
        const listed = yield* Effect.result(backend.ls(folder))
        if (Result.isSuccess(listed) || listed.failure.reason._tag !== "NotFound") break
        made.push(folder)
      }
      return made
    })

  /** Labels what a marked run is about to write, and the names that it gives to folders. */
  const writing = (paths: ReadonlyArray<string>) =>
    Effect.flatMap(isMarked, (label) =>
      label === undefined
        ? Effect.void
        : Effect.gen(function* () {
            const all = yield* places(paths)
            const made = new Set((yield* Effect.forEach(paths.map(normal), missing)).flat())
            yield* add(() => Object.fromEntries([...all, ...[...made].map(nameOf)].map((path) => [path, label])))
          })
    )

  const marking = (known: Known, fits: (labelled: string) => boolean) =>
    Effect.forEach(
      Object.entries(known).filter(([path]) => fits(path)),
      ([path, label]) => mark(path, label),
      { discard: true }
    )

  /** Marks the run that has read one of these, or something below it. */
  const reading = (paths: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const known = yield* read
      if (Object.keys(known).length === 0) return
      const all = yield* places(paths)
      yield* marking(known, (one) => all.some((path) => isAtOrBelow(one, path) || isAtOrBelow(path, one)))
    })

  /** Marks the run that has read these names. */
  const naming = (entries: ReadonlyArray<Backend.Entry>) =>
    entries.length === 0
      ? Effect.void
      : Effect.flatMap(read, (known) =>
          marking(known, (one) => entries.some(({ path }) => isAtOrBelow(path, one) || nameOf(path) === one))
        )

  /** Reads, and then looks for labels: what is written meanwhile was labelled before. Failures may quote what is there. */
  const then = <A>(
    work: Effect.Effect<A, BackendError.BackendError>,
    look: Effect.Effect<void, BackendError.BackendError>
  ) => Effect.flatMap(Effect.exit(work), (exit) => Effect.andThen(look, exit))

  const isShown = ({ path }: { readonly path: string }): boolean => !isLabels(path)

  const listing = (work: Effect.Effect<Backend.Listing, BackendError.BackendError>) =>
    Effect.gen(function* () {
      const found = yield* work
      const entries = found.entries.filter(isShown)
      yield* naming(entries)
      return { ...found, entries }
    })

  /** Gives many files to the backend, but that of the labels: results in the order of the request. */
  const except = <A>(
    operation: string,
    paths: ReadonlyArray<string>,
    work: Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>
  ): Effect.Effect<ReadonlyArray<Backend.Transfer<A>>> =>
    Effect.map(work, (results) => {
      const done = [...results]
      return paths.flatMap((path) => {
        if (!isLabels(path)) return done.splice(0, 1)
        return [{ path, ok: false, error: BackendError.make(operation, path, { _tag: "PermissionDenied" }) }]
      })
    })

  return {
    ...backend,
    ls: (path) => listing(backend.ls(path)),
    glob: (query) => listing(backend.glob(query)),
    read: (path, window) => Effect.andThen(closed("read", [path]), then(backend.read(path, window), reading([path]))),
    grep: (query) =>
      then(
        Effect.map(backend.grep(query), (found) => ({ ...found, files: found.files.filter(isShown) })),
        reading([query.path ?? "/"])
      ),
    download: (paths) =>
      except(
        "download",
        paths,
        Effect.tap(
          backend.download(paths.filter((path) => !isLabels(path))),
          Effect.catch(reading(paths), () => mark("/", unknown))
        )
      ),
    write: (path, content, options) =>
      Effect.andThen(Effect.andThen(closed("write", [path]), writing([path])), backend.write(path, content, options)),
    edit: (path, replacements, options) =>
      Effect.andThen(
        Effect.andThen(closed("edit", [path]), Effect.andThen(reading([path]), writing([path]))),
        then(backend.edit(path, replacements, options), reading([path]))
      ),
    upload: (files) => {
      const open = files.filter(({ path }) => !isLabels(path))
      const refused = (error: BackendError.BackendError) =>
        open.map(({ path }) => ({ path, ok: false as const, error: BackendError.at(error, "upload", path) }))
      return except(
        "upload",
        files.map(({ path }) => path),
        Effect.matchEffect(writing(open.map(({ path }) => path)), {
          onSuccess: () => backend.upload(open),
          onFailure: (error) => Effect.succeed(refused(error))
        })
      )
    },
    delete: (path, options) => Effect.andThen(closed("delete", [path]), backend.delete(path, options)),
    move: (from, to) =>
      Effect.gen(function* () {
        yield* closed("move", [from, to])
        const sources = yield* places([from])
        const target = normal(to)
        yield* add((known) =>
          Object.entries(known).reduce<Known>((labels, [path, label]) => {
            // A label from above goes with it, and so do those below.
            const source = sources.find((one) => isAtOrBelow(path, one))
            const moved =
              source !== undefined
                ? target + path.slice(source.length)
                : sources.some((one) => isAtOrBelow(one, path))
                  ? target
                  : undefined
            return moved === undefined ? labels : { ...labels, [moved]: both(labels[moved], label) }
          }, {})
        )
        yield* writing([to])
        yield* backend.move(from, to)
      })
  }
}
