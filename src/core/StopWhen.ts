/**
 * Conditions that end a run after a round of tools. They are looked at when the results of a round are in the history.
 */
import * as Effect from "effect/Effect"
import type { Slot } from "./AgentState.ts"
import type { Run } from "./Run.ts"

/** A condition: any effectful predicate over the run. */
export interface StopWhen<out E = never, out R = never> {
  (run: Run): Effect.Effect<boolean, E, R>
}

/** What a condition can fail with. */
export type Error<S> = S extends StopWhen<infer E, infer _R> ? E : never

/** What a condition needs. */
export type Services<S> = S extends StopWhen<infer _E, infer R> ? R : never

/** After that many rounds. Unlike `maxRounds` it asks for no final answer. */
export const rounds =
  (count: number): StopWhen =>
  (run) =>
    Effect.succeed(run.round >= count)

/** When the last round called a tool of that name. */
export const toolCalled =
  (name: string): StopWhen =>
  (run) =>
    Effect.sync(() => {
      const last = run.messages.findLast((message) => message.role === "ai")
      return last !== undefined && last.toolCalls.some((call) => call.name === name)
    })

/** When a slot of the state is as wanted. */
export const stateIs =
  <A>(slot: Slot<A>, predicate: (value: A) => boolean): StopWhen =>
  (run) =>
    Effect.map(run.state.get(slot), predicate)
