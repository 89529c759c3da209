/** The changes of an agent's memory, for the person who decides on them. */
import * as Effect from "effect/Effect"
import * as TextDiff from "effect/TextDiff"
import * as AgentState from "../../../core/AgentState.ts"
import type { Service as Store } from "../../../core/SessionStore.ts"
import * as Taint from "../../../middleware/Taint.ts"
import { loadThread } from "../../../sessions/journal.ts"
import { escapeUnseen } from "../../../support/text/clean.ts"
import type { Problem, MemoryReview } from "../chat/options.ts"
import { type Change, pendingChanges, settleChanges } from "../config/memory.ts"
import type { Places } from "../config/places.ts"
import type { Services } from "./app.ts"
import type { Guard } from "./machine/host.ts"

const planned = "nothing is changed in plan mode; say what should be remembered"

const textOf = (file: Change["after"]): string => (file === undefined ? "" : new TextDecoder().decode(file.bytes))

/** Shows a change as a diff. */
export const diffOf = ({ after, before }: Change): string =>
  escapeUnseen(TextDiff.unified(TextDiff.lines(textOf(before), textOf(after), { maxEdits: 1_000 })))

/** The sources of text from outside that are in a conversation, unless a person has cleared it. */
export const outsideOf = (store: Store, threadId: string): Effect.Effect<ReadonlyArray<string>> =>
  loadThread(store, threadId).pipe(
    Effect.flatMap(({ checkpoint }) => Effect.fromResult(AgentState.read(checkpoint?.state ?? {}, Taint.labels))),
    Effect.map(({ arrivals, cleared, from }) => (arrivals > cleared ? from : [])),
    // A state that can't be read may have been marked.
    Effect.orElseSucceed(() => ["a conversation that can't be read"])
  )

/** Makes the guard of a chat's memory, and what the chat needs to ask about its changes. */
export const makeRemembering = Effect.fnUntraced(function* (places: Places, store: Store) {
  const services = yield* Effect.context<Services>()
  const run = <A>(work: Effect.Effect<A, { readonly message: string }, Services>): Effect.Effect<A, Problem> =>
    work.pipe(
      Effect.provideContext(services),
      Effect.mapError(({ message }): Problem => ({ message }))
    )
  let isPlan = () => false
  const guard: Guard = () => (isPlan() ? planned : undefined)
  const remembering: MemoryReview = {
    setPlan: (next) => {
      isPlan = next
    },
    pending: run(
      Effect.map(pendingChanges(places), (changes) =>
        changes.map((change) => ({
          path: change.path,
          diff: diffOf(change),
          settle: (isKept) => run(settleChanges(places, [change], isKept))
        }))
      )
    ),
    outside: (threadId) => outsideOf(store, threadId)
  }
  return { guard, remembering }
})
