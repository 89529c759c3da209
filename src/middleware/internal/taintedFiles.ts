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

const isAtOrBelow = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`)

const both = (left: Label | undefined, right: Label): Label =>
  left === undefined
    ? right
    : { isDirty: left.isDirty || right.isDirty, secrets: [...new Set([...left.secrets, ...right.secrets])] }

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

  const change = (f: (known: Known) => Known) =>
    lock.withPermits(1)(
      Effect.flatMap(read, (known) => {
        const next = f(known)
        return next === known ? Effect.void : Effect.asVoid(backend.write(labelsFile, encode(next)))
      })
    )

  /** Labels what a marked run is about to write. */
  const writing = (paths: ReadonlyArray<string>) =>
    Effect.flatMap(isMarked, (label) =>
      label === undefined
        ? Effect.void
        : change((known) => ({
            ...known,
            ...Object.fromEntries(paths.map((path) => [normal(path), both(known[normal(path)], label)]))
          }))
    )

  /** Marks the run that is about to read one of these, or something below it. */
  const reading = (paths: ReadonlyArray<string>) =>
    Effect.flatMap(read, (known) =>
      Effect.forEach(
        Object.entries(known).filter(([labelledPath]) =>
          paths.map(normal).some((path) => isAtOrBelow(labelledPath, path) || isAtOrBelow(path, labelledPath))
        ),
        ([path, label]) => mark(path, label),
        { discard: true }
      )
    )

  const closed = (operation: string, paths: ReadonlyArray<string>) =>
    paths.some((path) => normal(path) === labelsFile)
      ? Effect.fail(BackendError.make(operation, labelsFile, { _tag: "PermissionDenied" }))
      : Effect.void

  const isShown = ({ path }: { readonly path: string }): boolean => normal(path) !== labelsFile

  return {
    ...backend,
    ls: (path) => Effect.map(backend.ls(path), (listing) => ({ ...listing, entries: listing.entries.filter(isShown) })),
    glob: (query) => Effect.map(backend.glob(query), (found) => ({ ...found, entries: found.entries.filter(isShown) })),
    read: (path, window) =>
      Effect.andThen(Effect.andThen(closed("read", [path]), reading([path])), backend.read(path, window)),
    grep: (query) =>
      Effect.andThen(
        reading([query.path ?? "/"]),
        Effect.map(backend.grep(query), (found) => ({ ...found, files: found.files.filter(isShown) }))
      ),
    download: (paths) =>
      Effect.andThen(
        Effect.catch(reading(paths), () => mark("/", unknown)),
        backend.download(paths.filter((path) => normal(path) !== labelsFile))
      ),
    write: (path, content, options) =>
      Effect.andThen(Effect.andThen(closed("write", [path]), writing([path])), backend.write(path, content, options)),
    edit: (path, replacements, options) =>
      Effect.andThen(
        Effect.andThen(closed("edit", [path]), Effect.andThen(reading([path]), writing([path]))),
        backend.edit(path, replacements, options)
      ),
    upload: (files) =>
      Effect.matchEffect(writing(files.map(({ path }) => path)), {
        onSuccess: () => backend.upload(files.filter(({ path }) => normal(path) !== labelsFile)),
        onFailure: (error) =>
          Effect.succeed(
            files.map(({ path }) => ({ path, ok: false as const, error: BackendError.at(error, "upload", path) }))
          )
      }),
    delete: (path, options) => Effect.andThen(closed("delete", [path]), backend.delete(path, options)),
    move: (from, to) =>
      Effect.andThen(
        Effect.andThen(
          closed("move", [from, to]),
          change((known) => {
            const moved = Object.entries(known).filter(([path]) => isAtOrBelow(path, normal(from)))
            return moved.length === 0
              ? known
              : {
                  ...known,
                  ...Object.fromEntries(
                    moved.map(([path, label]) => [normal(to) + path.slice(normal(from).length), label])
                  )
                }
          })
        ),
        Effect.andThen(writing([to]), backend.move(from, to))
      )
  }
}
