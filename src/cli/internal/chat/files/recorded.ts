/** Records the files of a turn, in a chat and in a run. */
import * as Effect from "effect/Effect"
import { type Service, SessionStore } from "../../../../core/SessionStore.ts"
import * as FileCheckpoints from "../../../../sessions/FileCheckpoints.ts"
import { cleanLine } from "../../../../support/text/clean.ts"

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

export const recorded =
  ({ checkpoints, store, warn, ...turn }: Turn) =>
  <A, E, R>(run: Effect.Effect<A, E, R>) => {
    // Both branches need the same services, whether files are kept or not.
    const watched = FileCheckpoints.record({
      ...turn,
      onProblem: (message) => warn(`This turn can't be taken back whole: ${cleanLine(message)}`)
    })(run).pipe(Effect.provideService(SessionStore, store))
    return checkpoints === undefined
      ? run
      : Effect.provideService(watched, FileCheckpoints.FileCheckpoints, checkpoints)
  }
