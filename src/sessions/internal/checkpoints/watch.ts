/** Wraps the files and commands of an agent, so that each change is recorded. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import * as Sandbox from "../../../core/Sandbox.ts"
import type { Fault } from "../tables.ts"
import type { Recorder } from "./recorder.ts"

/** Finds the path of the machine for a path of the backend; `undefined` for one that lies elsewhere. */
export type Locate = (path: string) => string | undefined

/** The machine has no longer paths, so a change of one fails, in characters. */
const longestPath = 4_096

/** Wraps a backend. A recording that fails is reported, and the change is made all the same. */
export const watch =
  (recorder: Recorder, locate: Locate, onFault: (fault: Fault) => void) =>
  <S extends Backend.Service>(backend: S): S => {
    const quietly = <A>(work: Effect.Effect<A, Fault>): Effect.Effect<A | undefined> =>
      Effect.catch(work, (fault) =>
        Effect.sync(() => {
          onFault(fault)
          return undefined
        })
      )

    const changing = <A, E>(
      paths: ReadonlyArray<string>,
      work: Effect.Effect<A, E>,
      deep = false
    ): Effect.Effect<A, E> => {
      const own = paths.flatMap((path) => locate(path) ?? []).filter((path) => path.length <= longestPath)
      if (own.length === 0) return work
      return Effect.flatMap(quietly(recorder.touch(own, deep)), (touched) =>
        Effect.ensuring(work, quietly(recorder.see(touched ?? [], deep)))
      )
    }

    const files: Partial<Backend.Service> = {
      write: (path, content, options) => changing([path], backend.write(path, content, options)),
      edit: (path, replacements, options) => changing([path], backend.edit(path, replacements, options)),
      delete: (path, options) => changing([path], backend.delete(path, options), true),
      move: (from, to) => changing([from, to], backend.move(from, to), true),
      upload: (all) =>
        changing(
          all.map(({ path }) => path),
          backend.upload(all)
        )
    }
    if (!Sandbox.isSandbox(backend)) return { ...backend, ...files }
    const sandbox: Sandbox.Service = backend
    const commands: Pick<Sandbox.Service, "execute" | "executeStream"> = {
      execute: (command, options) =>
        Effect.andThen(
          quietly(recorder.beforeCommand),
          Effect.ensuring(sandbox.execute(command, options), recorder.afterCommand)
        ),
      executeStream: (command, options) =>
        Stream.unwrap(
          Effect.as(
            quietly(recorder.beforeCommand),
            Stream.ensuring(
              Stream.suspend((): Stream.Stream<Sandbox.ExecuteEvent, BackendError> =>
                sandbox.executeStream(command, options)
              ),
              recorder.afterCommand
            )
          )
        )
    }
    return { ...backend, ...files, ...commands }
  }
