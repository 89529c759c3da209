/**
 * A backend that remembers which files hold text from outside.
 *
 * Each label is a small file of its own, in a folder that mirrors the backend's folders. So the cost of writing or
 * finding a label does not grow with the number of labels.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"

/** The folder of the labels. */
const labelsFolder = "/.deepagents-labels"

const Label = Schema.Struct({ isDirty: Schema.Boolean, secrets: Schema.Array(Schema.String) })
export type Label = typeof Label.Type

const LabelText = Schema.fromJsonString(Label)
const decode = Schema.decodeUnknownResult(LabelText)
const encode = Schema.encodeSync(LabelText)

/** The label where nobody knows. */
const unknown: Label = { isDirty: true, secrets: [] }

/** The marks of the run that a fiber works for, and a way to add to them. */
export interface Marks {
  readonly isMarked: Effect.Effect<Label | undefined>
  readonly mark: (path: string, label: Label) => Effect.Effect<void>
  /** The folders whose files are trusted, where not all are. */
  readonly roots?: ReadonlyArray<string> | undefined
}

const normal = (path: string): string =>
  `/${path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/")}`

const isAtOrBelow = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`)

/** Reports whether a path is in the folder of the labels, in upper or lower case. */
const isLabels = (path: string): boolean => isAtOrBelow(normal(path).toUpperCase(), labelsFolder.toUpperCase())

const both = (left: Label | undefined, right: Label): Label =>
  left === undefined
    ? right
    : { isDirty: left.isDirty || right.isDirty, secrets: [...new Set([...left.secrets, ...right.secrets])] }

const isIn = (label: Label, whole: Label): boolean =>
  (whole.isDirty || !label.isDirty) && label.secrets.every((secret) => whole.secrets.includes(secret))

/** The folders above a path, the nearest first, without the root. */
const ancestors = (path: string): ReadonlyArray<string> => {
  const names = path.split("/").slice(1, -1)
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`).reverse()
}

/** The folder of labels that mirrors a path. Names that begin with "=" are the labels themselves. */
const mirror = (path: string): string => labelsFolder + (path === "/" ? "" : path.replaceAll("/=", "/=="))

/** The label of a path and of all that is below it. */
const contentLabel = (path: string): string => `${mirror(path)}/=content`

/** The label of a folder's name. It covers no content of the folder. */
const nameLabel = (path: string): string => `${mirror(path)}/=name`

/** The path that a label is for. */
const pathOf = (file: string): string =>
  normal(file.slice(labelsFolder.length, file.lastIndexOf("/")).replaceAll("/==", "/="))

const attempts = 100

/** Labels that are looked for below a folder: more than these count as a label of the folder. */
const most = 10_000

const isMissing = ({ reason }: BackendError.BackendError): boolean =>
  reason._tag === "NotFound" || reason._tag === "NotDirectory"

/** A label that can't be read has been tampered with: it counts as from outside. */
const labelIn = (text: string): Label => Result.getOrElse(decode(text), () => unknown)

/** Reads and writes labels in the folder of labels. */
const makeLabels = (backend: Backend.Service) => {
  let isIgnored = false

  /** Keeps searches and commits from the labels. */
  const ignore = Effect.suspend(() =>
    isIgnored
      ? Effect.void
      : Effect.map(Effect.result(backend.write(`${labelsFolder}/.gitignore`, "*\n", { create: true })), (result) => {
          isIgnored = Result.isSuccess(result) || result.failure.reason._tag === "AlreadyExists"
        })
  )

  /** Reads the labels that there are of these files. */
  const readLabels = (files: ReadonlyArray<string>) =>
    Effect.flatMap(
      backend.download(files),
      Effect.forEach((file) =>
        file.ok
          ? Effect.succeed([[pathOf(file.path), labelIn(new TextDecoder().decode(file.value))] as const])
          : isMissing(file.error)
            ? Effect.succeed([])
            : Effect.fail(file.error)
      )
    ).pipe(Effect.map((lists) => lists.flat()))

  /** Finds the files of the labels of a folder and of all that is below it. */
  const below = (folder: string) =>
    Effect.matchEffect(backend.glob({ pattern: "=*", path: mirror(folder), ignored: true, limit: most }), {
      onSuccess: ({ entries, truncated }) =>
        Effect.succeed({ files: entries.map(({ path }) => path), isWhole: truncated === undefined }),
      onFailure: (error) => (isMissing(error) ? Effect.succeed({ files: [], isWhole: true }) : Effect.fail(error))
    })

  /** Adds a label; of two writers that do so at once, one looks again. */
  const add = (file: string, label: Label): Effect.Effect<void, BackendError.BackendError> =>
    Effect.gen(function* () {
      for (let attempt = 1; ; attempt++) {
        const content = yield* Effect.result(backend.read(file))
        if (Result.isFailure(content) && !isMissing(content.failure)) return yield* content.failure
        const current = Result.isFailure(content)
          ? undefined
          : labelIn("text" in content.success ? content.success.text : "")
        if (current !== undefined && isIn(label, current)) return
        const outcome = yield* Effect.result(
          backend.write(
            file,
            encode(both(current, label)),
            Result.isFailure(content) ? { create: true } : { version: content.success.version }
          )
        )
        if (Result.isSuccess(outcome)) return
        const { _tag } = outcome.failure.reason
        if (attempt === attempts || (_tag !== "Conflict" && _tag !== "AlreadyExists")) return yield* outcome.failure
      }
    })

  const addAll = (labels: Iterable<readonly [file: string, label: Label]>) => {
    const all = [...labels]
    return all.length === 0
      ? Effect.void
      : Effect.andThen(
          ignore,
          Effect.forEach(all, ([file, label]) => add(file, label), { discard: true, concurrency: 8 })
        )
  }

  /** The paths as they are given, and as they are when links are followed and names are as they are stored. */
  const places = (paths: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>, BackendError.BackendError> => {
    const normalPaths = paths.map(normal)
    if (backend.realPaths === undefined) return Effect.succeed(normalPaths)
    return Effect.map(backend.realPaths(paths), (real) => [
      ...new Set([...normalPaths, ...real.flatMap((path) => (path === undefined ? [] : [path]))])
    ])
  }

  /** Copies the labels of a path and of the folders above it to a new path. */
  const copy = (from: string, to: string) =>
    Effect.gen(function* () {
      const target = normal(to)
      for (const source of yield* places([from])) {
        const { files, isWhole } = yield* below(source)
        if (!isWhole) yield* addAll([[contentLabel(target), unknown]])
        const copied = yield* Effect.forEach(isWhole ? files : [], (file) =>
          Effect.map(readLabels([file]), (entries) =>
            entries.map(([, label]) => [mirror(target) + file.slice(mirror(source).length), label] as const)
          )
        )
        const above = yield* readLabels([...ancestors(source), "/"].map(contentLabel))
        yield* addAll([...copied.flat(), ...above.map(([, label]) => [contentLabel(target), label] as const)])
      }
    })

  return { readLabels, below, addAll, places, copy }
}

/** Marks runs that read labelled files, and labels the files of marked runs. */
const makeWatch = (backend: Backend.Service, { isMarked, mark, roots }: Marks) => {
  const { addAll, below, copy, places, readLabels } = makeLabels(backend)

  /** The folders that will be made for a file. */
  const missing = (path: string) =>
    Effect.gen(function* () {
      const folders: Array<string> = []
      for (const folder of ancestors(path)) {
        const entry = yield* Effect.result(backend.read(folder, { limit: 0 }))
        if (Result.isSuccess(entry) || entry.failure.reason._tag !== "NotFound") break
        folders.push(folder)
      }
      return folders
    })

  /** Labels the files that a marked run will write, and the names of new folders. */
  const writing = (paths: ReadonlyArray<string>) =>
    Effect.flatMap(isMarked, (label) =>
      label === undefined
        ? Effect.void
        : Effect.gen(function* () {
            const all = yield* places(paths)
            const newFolders = new Set((yield* Effect.forEach(paths.map(normal), missing)).flat())
            yield* addAll(
              [...all.map(contentLabel), ...[...newFolders].map(nameLabel)].map((file) => [file, label] as const)
            )
          })
    )

  const marking = (entries: ReadonlyArray<readonly [path: string, label: Label]>) =>
    Effect.forEach(entries, ([path, label]) => mark(path, label), { discard: true })

  /** Marks the run that has read something outside of the trusted folders. */
  const trusting = (paths: ReadonlyArray<string>) => {
    const foreign = roots === undefined ? [] : paths.filter((path) => !roots.some((root) => isAtOrBelow(path, root)))
    return marking(foreign.slice(0, 20).map((path) => [path, unknown]))
  }

  /** The labels that apply to a path: its own, and the labels of the folders above it. */
  const holding = (path: string): ReadonlyArray<string> => [path, ...ancestors(path), "/"].map(contentLabel)

  /** Marks the run that has read these files. */
  const reading = (paths: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const all = yield* places(paths)
      yield* trusting(all)
      yield* marking(yield* readLabels([...new Set(all.flatMap(holding))]))
    })

  /** Marks the run that has looked into all files of a folder. */
  const searching = (folder: string) =>
    Effect.gen(function* () {
      yield* reading([folder])
      for (const place of yield* places([folder])) {
        const { files, isWhole } = yield* below(place)
        yield* marking(isWhole ? yield* readLabels(files) : [[place, unknown]])
      }
    })

  /** Marks the run that has read these names. */
  const naming = (entries: ReadonlyArray<Backend.Entry>) =>
    Effect.gen(function* () {
      yield* trusting(entries.map(({ path }) => path))
      const all = yield* Effect.result(backend.ls(labelsFolder))
      if (Result.isFailure(all)) return isMissing(all.failure) ? undefined : yield* all.failure
      const folders = Map.groupBy(entries, ({ path }) => ancestors(path)[0] ?? "/")
      for (const [folder, its] of folders) {
        yield* marking(yield* readLabels([...new Set([folder, ...ancestors(folder), "/"])].map(contentLabel)))
        const listed = yield* Effect.result(backend.ls(mirror(folder)))
        if (Result.isFailure(listed)) {
          if (!isMissing(listed.failure)) return yield* listed.failure
          continue
        }
        const mirrors = new Set(listed.success.entries.map(({ path }) => path.toLowerCase()))
        const here = its.filter(({ path }) => mirrors.has(mirror(path).toLowerCase()))
        yield* marking(yield* readLabels(here.flatMap(({ path }) => [contentLabel(path), nameLabel(path)])))
      }
    })

  return { writing, reading, searching, naming, copy }
}

const rejectLabels = (operation: string, paths: ReadonlyArray<string>) =>
  paths.some(isLabels)
    ? Effect.fail(BackendError.make(operation, labelsFolder, { _tag: "PermissionDenied" }))
    : Effect.void

/**
 * Looks for labels after the work, even after a failure, which may quote the content. A concurrent write has its label
 * already.
 */
const runThenLook = <A>(
  work: Effect.Effect<A, BackendError.BackendError>,
  look: Effect.Effect<void, BackendError.BackendError>
) => Effect.flatMap(Effect.exit(work), (exit) => Effect.andThen(look, exit))

const isShown = ({ path }: { readonly path: string }): boolean => !isLabels(path)

/** Gives many files to the backend, but that of the labels: results in the order of the request. */
const except = <A>(
  operation: string,
  paths: ReadonlyArray<string>,
  work: Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>
): Effect.Effect<ReadonlyArray<Backend.Transfer<A>>> =>
  Effect.map(work, (results) => {
    const rest = [...results]
    return paths.flatMap((path) => {
      if (!isLabels(path)) return rest.splice(0, 1)
      return [{ path, ok: false, error: BackendError.make(operation, path, { _tag: "PermissionDenied" }) }]
    })
  })

/** Puts labels before a backend. */
export const labelled = (backend: Backend.Service, marks: Marks): Backend.Service => {
  const { copy, naming, reading, searching, writing } = makeWatch(backend, marks)

  const listing = (work: Effect.Effect<Backend.Listing, BackendError.BackendError>) =>
    Effect.gen(function* () {
      const all = yield* work
      const entries = all.entries.filter(isShown)
      yield* naming(entries)
      return { ...all, entries }
    })

  return {
    ...backend,
    ls: (path) => listing(backend.ls(path)),
    glob: (query) => listing(backend.glob(query)),
    read: (path, window) =>
      Effect.andThen(rejectLabels("read", [path]), runThenLook(backend.read(path, window), reading([path]))),
    grep: (query) =>
      runThenLook(
        Effect.map(backend.grep(query), (result) => ({ ...result, files: result.files.filter(isShown) })),
        searching(query.path ?? "/")
      ),
    download: (paths) =>
      except(
        "download",
        paths,
        Effect.tap(
          backend.download(paths.filter((path) => !isLabels(path))),
          Effect.catch(reading(paths), () => marks.mark("/", unknown))
        )
      ),
    write: (path, content, options) =>
      Effect.andThen(
        Effect.andThen(rejectLabels("write", [path]), writing([path])),
        backend.write(path, content, options)
      ),
    edit: (path, replacements, options) =>
      Effect.andThen(
        Effect.andThen(rejectLabels("edit", [path]), Effect.andThen(reading([path]), writing([path]))),
        runThenLook(backend.edit(path, replacements, options), reading([path]))
      ),
    upload: (files) => {
      const open = files.filter(({ path }) => !isLabels(path))
      const failuresOf = (error: BackendError.BackendError) =>
        open.map(({ path }) => ({ path, ok: false as const, error: BackendError.at(error, "upload", path) }))
      return except(
        "upload",
        files.map(({ path }) => path),
        Effect.matchEffect(writing(open.map(({ path }) => path)), {
          onSuccess: () => backend.upload(open),
          onFailure: (error) => Effect.succeed(failuresOf(error))
        })
      )
    },
    delete: (path, options) => Effect.andThen(rejectLabels("delete", [path]), backend.delete(path, options)),
    move: (from, to) =>
      Effect.gen(function* () {
        yield* rejectLabels("move", [from, to])
        yield* copy(from, to)
        yield* writing([to])
        yield* backend.move(from, to)
      })
  }
}
