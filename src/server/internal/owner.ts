/** The right to work on mail: one process at a time has it. */
import * as Effect from "effect/Effect"
import type { RunsError } from "./service.ts"

/** The right of this process: to all mail by a lease, or to that of one thread by its place in the cluster. */
export interface Owner {
  /** Reports whether this process has it, as far as it knows. */
  readonly isOwn: Effect.Effect<boolean>
  /** Looks whether this process has it. A later owner sees all mail that was stored before this. */
  readonly confirm: Effect.Effect<boolean>
  /** Makes the failure of a process without it. */
  readonly refuse: (threadId: string) => Effect.Effect<RunsError>
}

/** Fails unless this process has the right. */
export const check = ({ isOwn, refuse }: Owner, threadId: string): Effect.Effect<void, RunsError> =>
  Effect.flatMap(isOwn, (own) => (own ? Effect.void : Effect.flatMap(refuse(threadId), Effect.fail)))
