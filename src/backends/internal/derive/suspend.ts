/** A backend that is another one each time: which one, is found out when an operation begins. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { nameOf } from "./transfer.ts"

/** Makes the service. `find` gets the operation and its path for its failures. */
export const suspend = (
  find: (operation: string, path: string) => Effect.Effect<Backend.Service, BackendError.BackendError>
): Backend.Service => {
  const use = <A>(
    operation: string,
    path: string,
    run: (backend: Backend.Service) => Effect.Effect<A, BackendError.BackendError>
  ): Effect.Effect<A, BackendError.BackendError> => Effect.flatMap(find(operation, path), run)

  /** Without a backend, each of the files has failed. */
  const transfer = <I, A>(
    operation: string,
    items: ReadonlyArray<I>,
    pathOf: (item: I) => string,
    run: (backend: Backend.Service) => Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>
  ): Effect.Effect<ReadonlyArray<Backend.Transfer<A>>> =>
    Effect.matchEffect(find(operation, "/"), {
      onSuccess: run,
      onFailure: (error) =>
        Effect.succeed(
          items.map((item) => {
            const path = pathOf(item)
            return { path: nameOf(operation, path), ok: false as const, error: BackendError.at(error, operation, path) }
          })
        )
    })

  return {
    ls: (path) => use("ls", path, (backend) => backend.ls(path)),
    read: (path, window) => use("read", path, (backend) => backend.read(path, window)),
    write: (path, content, options) => use("write", path, (backend) => backend.write(path, content, options)),
    edit: (path, replacements, options) => use("edit", path, (backend) => backend.edit(path, replacements, options)),
    delete: (path, options) => use("delete", path, (backend) => backend.delete(path, options)),
    move: (from, to) => use("move", from, (backend) => backend.move(from, to)),
    grep: (query) => use("grep", query.path ?? "/", (backend) => backend.grep(query)),
    glob: (query) => use("glob", query.path ?? "/", (backend) => backend.glob(query)),
    upload: (files) =>
      transfer(
        "upload",
        files,
        (file) => file.path,
        (backend) => backend.upload(files)
      ),
    download: (paths) =>
      transfer(
        "download",
        paths,
        (path) => path,
        (backend) => backend.download(paths)
      )
  }
}
