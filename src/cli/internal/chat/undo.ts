/** Records files before a turn changes them, so that `/undo` restores files and conversation together. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"

/** The bytes of a file before the turn. `undefined` if the file did not exist, or could not be read. */
interface Before {
  readonly path: string
  readonly was: Uint8Array | undefined
  readonly isKnown: boolean
}

export interface Turn {
  readonly threadId: string
  /** The leaf of the thread before the turn. */
  readonly leaf: string | null
  readonly said: string
  readonly files: Map<string, Before>
}

export interface Recorder {
  /** Wraps the backend for the runs of the chat. */
  readonly wrap: <S extends Backend.Service>(backend: S) => S
  readonly begin: (threadId: string, leaf: string | null, said: string) => void
  readonly turns: () => ReadonlyArray<Turn>
  /** Restores the files of a turn. Returns the paths that could not be restored. */
  readonly restore: (backend: Backend.Service, turn: Turn) => Effect.Effect<ReadonlyArray<string>>
  readonly forget: (turn: Turn) => void
}

/** The most turns that can be undone, and the largest file that is kept, in bytes. */
const most = { turns: 50, bytes: 5_000_000 } as const

export const makeRecorder = (): Recorder => {
  let turns: ReadonlyArray<Turn> = []

  const keep = (backend: Backend.Service, path: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const turn = turns.at(-1)
      if (turn === undefined || turn.files.has(path)) return Effect.void
      return Effect.map(backend.download([path]), ([found]) => {
        const isMissing = found?.ok === false && found.error.reason._tag === "NotFound"
        const bytes = found?.ok === true ? found.value : undefined
        const isKnown = isMissing || (bytes !== undefined && bytes.length <= most.bytes)
        turn.files.set(path, { path, was: isKnown ? bytes : undefined, isKnown })
      })
    })

  return {
    wrap: (backend) => ({
      ...backend,
      write: (path, content, options) => Effect.andThen(keep(backend, path), backend.write(path, content, options)),
      edit: (path, replacements, options) =>
        Effect.andThen(keep(backend, path), backend.edit(path, replacements, options)),
      delete: (path, options) => Effect.andThen(keep(backend, path), backend.delete(path, options)),
      move: (from, to) =>
        Effect.andThen(Effect.andThen(keep(backend, from), keep(backend, to)), backend.move(from, to)),
      upload: (files) =>
        Effect.andThen(
          Effect.forEach(files, ({ path }) => keep(backend, path), { discard: true }),
          backend.upload(files)
        )
    }),
    begin: (threadId, leaf, said) => {
      turns = [...turns, { threadId, leaf, said, files: new Map() }].slice(-most.turns)
    },
    turns: () => turns,
    forget: (turn) => {
      turns = turns.filter((other) => other !== turn)
    },
    restore: (backend, turn) =>
      Effect.map(
        Effect.forEach([...turn.files.values()], ({ isKnown, path, was }) => {
          if (!isKnown) return Effect.succeed(path)
          const back: Effect.Effect<unknown, BackendError> =
            was === undefined
              ? Effect.catchIf(
                  backend.delete(path),
                  (error) => error.reason._tag === "NotFound",
                  () => Effect.void
                )
              : Effect.flatMap(backend.upload([{ path, content: was }]), ([done]) =>
                  done?.ok === false ? Effect.fail(done.error) : Effect.void
                )
          return Effect.map(Effect.result(back), (result) => (Result.isSuccess(result) ? undefined : path))
        }),
        (paths) => paths.filter((path) => path !== undefined)
      )
  }
}
