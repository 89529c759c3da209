/**
 * Conditions that end a run after a round of tools. They are asked when the results of a round are in the history.
 *
 * ```ts
 * import { pipe } from "effect"
 * import { StopWhen } from "effect-deepagents"
 *
 * const condition = pipe(StopWhen.toolCalled("publish"), StopWhen.and(StopWhen.not(StopWhen.toolCalled("review"))))
 * ```
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type { Slot } from "./AgentState.ts"
import type { Run } from "./Run.ts"

/** A condition: an effectful predicate over the run. The run stops when any of its conditions holds. */
export interface StopWhen<out E = never, out R = never> {
  (run: Run): Effect.Effect<boolean, E, R>
}

/** The failures of a condition. */
export type Error<S> = S extends StopWhen<infer E, infer _R> ? E : never

/** The services that a condition needs. */
export type Services<S> = S extends StopWhen<infer _E, infer R> ? R : never

/** After that many rounds. Unlike `maxRounds` it asks for no final answer. */
export const rounds =
  (count: number): StopWhen =>
  (run) =>
    Effect.succeed(run.round >= count)

/** Holds when the last round called a tool of that name. */
export const toolCalled =
  (name: string): StopWhen =>
  (run) =>
    Effect.sync(() => {
      const last = run.messages.findLast((message) => message.role === "ai")
      return last !== undefined && last.toolCalls.some((call) => call.name === name)
    })

/** Holds when a slot of the state is as wanted. */
export const stateIs =
  <A>(slot: Slot<A>, predicate: (value: A) => boolean): StopWhen =>
  (run) =>
    Effect.map(run.state.get(slot), predicate)

/** Holds when both conditions hold. The second is only asked if the first holds. */
export const and: {
  <E2, R2>(that: StopWhen<E2, R2>): <E, R>(self: StopWhen<E, R>) => StopWhen<E | E2, R | R2>
  <E, R, E2, R2>(self: StopWhen<E, R>, that: StopWhen<E2, R2>): StopWhen<E | E2, R | R2>
} = dual(
  2,
  <E, R, E2, R2>(self: StopWhen<E, R>, that: StopWhen<E2, R2>): StopWhen<E | E2, R | R2> =>
    (run) =>
      Effect.flatMap(self(run), (holds) => (holds ? that(run) : Effect.succeed(false)))
)

/** Holds when either condition holds. The second is only asked if the first does not hold. */
export const or: {
  <E2, R2>(that: StopWhen<E2, R2>): <E, R>(self: StopWhen<E, R>) => StopWhen<E | E2, R | R2>
  <E, R, E2, R2>(self: StopWhen<E, R>, that: StopWhen<E2, R2>): StopWhen<E | E2, R | R2>
} = dual(
  2,
  <E, R, E2, R2>(self: StopWhen<E, R>, that: StopWhen<E2, R2>): StopWhen<E | E2, R | R2> =>
    (run) =>
      Effect.flatMap(self(run), (holds) => (holds ? Effect.succeed(true) : that(run)))
)

/** Holds when the condition does not. */
export const not =
  <E, R>(self: StopWhen<E, R>): StopWhen<E, R> =>
  (run) =>
    Effect.map(self(run), (holds) => !holds)
