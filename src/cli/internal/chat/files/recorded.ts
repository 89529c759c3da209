/** Records the files of a turn, in a chat and in a run. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Service, SessionStore } from "../../../../core/SessionStore.ts"
import * as FileCheckpoints from "../../../../sessions/FileCheckpoints.ts"
import { cleanLine } from "../../../../support/text/clean.ts"
import { Enclosure } from "../../work/machine/enclosure.ts"

/** The thread of a turn, and where its files are kept, if they are. */
interface Turn {
  readonly checkpoints: FileCheckpoints.Service | undefined
  readonly store: Service
  readonly threadId: string
  readonly title: string
  readonly goesOn: boolean
  /** Tells the person why the turn can't be taken back. */
  readonly warn: (message: string) => void
}

/** Records the isolated commands of a run, too: their sandbox is another one. */
const recordingIsolated = (checkpoints: FileCheckpoints.Service) => {
  let watch: FileCheckpoints.Recording["watch"] = (sandbox) => sandbox
  const begin: FileCheckpoints.Service["begin"] = (options) =>
    Effect.tap(checkpoints.begin(options), (recording) =>
      Effect.sync(() => {
        watch = recording.watch
      })
    )
  return {
    service: { ...checkpoints, begin } satisfies FileCheckpoints.Service,
    watched: <A, E, R>(run: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.flatMap(
        Effect.serviceOption(Enclosure),
        Option.match({
          onNone: () => run,
          onSome: (open) => Effect.provideService(run, Enclosure, Effect.map(open, watch))
        })
      )
  }
}

export const recorded =
  ({ checkpoints, store, warn, ...turn }: Turn) =>
  <A, E, R>(run: Effect.Effect<A, E, R>) => {
    if (checkpoints === undefined) return run
    const { service, watched } = recordingIsolated(checkpoints)
    return FileCheckpoints.record({
      ...turn,
      onProblem: (message) => warn(`This turn can't be taken back whole: ${cleanLine(message)}`)
    })(watched(run)).pipe(
      Effect.provideService(SessionStore, store),
      Effect.provideService(FileCheckpoints.FileCheckpoints, service)
    )
  }
