/** Guards the memory of an agent: it is written only where a person decides on it later. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Backend, type Service } from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"

/** Tells why nothing may be written now, for the model; `undefined` if something may be. */
export type Guard = () => string | undefined

const unguarded: Guard = () => "memory can't be changed here"

const guard = (files: Service, refusal: Guard): Service => {
  const errorOf = (operation: string, path: string) =>
    Effect.map(
      Effect.sync(() => refusal()),
      (detail) =>
        detail === undefined ? undefined : BackendError.make(operation, path, { _tag: "PermissionDenied" }, { detail })
    )
  const unless = <A>(operation: string, path: string, work: Effect.Effect<A, BackendError.BackendError>) =>
    Effect.flatMap(errorOf(operation, path), (error) => (error === undefined ? work : Effect.fail(error)))
  return {
    ...files,
    write: (path, content, options) => unless("write", path, files.write(path, content, options)),
    edit: (path, replacements, options) => unless("edit", path, files.edit(path, replacements, options)),
    delete: (path, options) => unless("delete", path, files.delete(path, options)),
    move: (from, to) => unless("move", from, files.move(from, to)),
    upload: (all) =>
      Effect.flatMap(errorOf("upload", all[0]?.path ?? "/"), (error) =>
        error === undefined
          ? files.upload(all)
          : Effect.succeed(all.map(({ path }) => ({ path, ok: false, error }) as const))
      )
  }
}

/** Refuses changes of these files for as long as the guard gives a reason. */
export const guarded = <E, R>(
  files: Layer.Layer<Backend, E, R>,
  refusal: Guard = unguarded
): Layer.Layer<Backend, E, R> =>
  Layer.effect(
    Backend,
    Effect.map(Backend, (service) => Backend.of(guard(service, refusal)))
  ).pipe(Layer.provide(files))
