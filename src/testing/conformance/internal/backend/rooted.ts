/** Shows a folder of a backend as its root: the checks write paths from there. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Backend from "../../../../core/Backend.ts"
import * as BackendError from "../../../../core/BackendError.ts"

/** Tells whether the rule of paths refuses it as it is: it must not become a name below the folder. */
const isSpecial = (path: string): boolean => /^[~]|^\/+~|^\.\/+~|^[A-Za-z]:(\/|$)/.test(path)

/** Makes the service whose root is a folder of another one. */
const rootedAt = (backend: Backend.Service, folder: string): Backend.Service => {
  const into = (path: string): string => (isSpecial(path) ? path : `${folder}/${path}`)
  const out = (path: string): string => path.slice(folder.length) || "/"
  const failed = (path: string) => (error: BackendError.BackendError) =>
    BackendError.make(error.operation, path, error.reason, error.detail === undefined ? {} : { detail: error.detail })
  const on = <A>(path: string, effect: Effect.Effect<A, BackendError.BackendError>) =>
    Effect.mapError(effect, failed(path))
  const placed = <A extends { readonly path: string }>(value: A): A => ({ ...value, path: out(value.path) })
  const placeListing = (listing: Backend.Listing): Backend.Listing => ({
    ...listing,
    entries: listing.entries.map(placed)
  })
  const transferred =
    <A>(paths: ReadonlyArray<string>, map: (value: A) => A) =>
    (all: ReadonlyArray<Backend.Transfer<A>>): ReadonlyArray<Backend.Transfer<A>> =>
      all.map((one, index) => {
        const path = paths[index] ?? ""
        return one.ok
          ? { path: out(one.path), ok: true, value: map(one.value) }
          : { path, ok: false, error: failed(path)(one.error) }
      })
  return {
    ls: (path) => Effect.map(on(path, backend.ls(into(path))), placeListing),
    read: (path, window) => Effect.map(on(path, backend.read(into(path), window)), placed),
    write: (path, content, options) => Effect.map(on(path, backend.write(into(path), content, options)), placed),
    edit: (path, edits, options) => Effect.map(on(path, backend.edit(into(path), edits, options)), placed),
    delete: (path, options) => on(path, backend.delete(into(path), options)),
    move: (from, to) => on(from, backend.move(into(from), into(to))),
    grep: (query) =>
      Effect.map(on(query.path ?? "/", backend.grep({ ...query, path: into(query.path ?? "/") })), (result) => ({
        ...result,
        files: result.files.map(placed)
      })),
    glob: (query) =>
      Effect.map(on(query.path ?? "/", backend.glob({ ...query, path: into(query.path ?? "/") })), placeListing),
    upload: (files) =>
      Effect.map(
        backend.upload(files.map(({ content, path }) => ({ path: into(path), content }))),
        transferred(
          files.map(({ path }) => path),
          placed
        )
      ),
    download: (paths) =>
      Effect.map(
        backend.download(paths.map(into)),
        transferred(paths, (bytes) => bytes)
      )
  }
}

/** Shows the working folder of a backend as its root. It still folds `..`, which only such a backend does. */
export const inWorkingFolder = (backend: Backend.Service): Backend.Service =>
  backend.paths === undefined ? backend : { ...rootedAt(backend, backend.paths.cwd), paths: backend.paths }

/** Shows a folder of the backend in context as its root. */
export const layerRootedAt = (folder: string): Layer.Layer<Backend.Backend, never, Backend.Backend> =>
  Layer.effect(
    Backend.Backend,
    Backend.Backend.use((backend) => Effect.succeed(rootedAt(backend, folder)))
  )
