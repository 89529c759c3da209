/** Failures of the program, with the exit codes that tell a script what ended it. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isPlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type { StopReason } from "../../core/StopReason.ts"
import { TaggedError } from "../../support/effect/taggedError.ts"
import { problemOf } from "../../support/store/disk.ts"

/**
 * The exit codes of `deepagents`:
 *
 * - `done`: the answer is complete
 * - `failed`: the run or the command failed
 * - `usage`: a flag, an argument, a settings file or an agent file is wrong
 * - `noModel`: no model answers: the key is missing or refused, or the provider is unknown
 * - `rounds`, `budget`: a limit ended the run, and the output is the forced answer
 * - `waiting`: calls wait for a decision, see `deepagents inbox`
 * - `refused`: the model, its provider's filter or a guardrail refused
 * - `cut`: the model's output limit cut the answer
 * - `output`: the answer does not fit `--output-schema`
 * - `unfinished`: a workflow stopped before its script returned, see `deepagents workflow resume`
 * - `hungUp`, `interrupted`, `terminated`: the terminal closed; Ctrl-C; SIGTERM
 * - `closed`: the reader of the output left
 */
export const exits = {
  done: 0,
  failed: 1,
  usage: 2,
  noModel: 3,
  rounds: 4,
  budget: 5,
  waiting: 6,
  refused: 7,
  cut: 8,
  output: 9,
  unfinished: 10,
  hungUp: 129,
  interrupted: 130,
  closed: 141,
  terminated: 143
} as const

export type Exit = keyof typeof exits

const names = [
  "done",
  "failed",
  "usage",
  "noModel",
  "rounds",
  "budget",
  "waiting",
  "refused",
  "cut",
  "output",
  "unfinished",
  "hungUp",
  "interrupted",
  "closed",
  "terminated"
] as const satisfies ReadonlyArray<Exit>

/** Ends the program with an exit code, and with a message unless it was already written. */
export class Failure extends TaggedError<Failure>()("Failure", {
  exit: Schema.Literals(names),
  message: Schema.String
}) {}

export const fail = (exit: Exit, message: string): Effect.Effect<never, Failure> =>
  Effect.fail(new Failure({ exit, message }))

/** The message of a failure. Errors of the disk get a message for people. */
export const wordsOf = (error: { readonly message: string }): string =>
  isPlatformError(error) ? problemOf(error) : error.message

/** Turns an error with a message into a failure of the program. */
export const orFail =
  (exit: Exit, before = "") =>
  <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Failure, R> =>
    Effect.mapError(effect, (error) => new Failure({ exit, message: before + wordsOf(error) }))

/** Like {@link orFail}, for a layer. */
export const layerOrFail =
  (exit: Exit) =>
  <A, E extends { readonly message: string }, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, Failure, R> =>
    Layer.catch(layer, (error) => Layer.effectContext(fail(exit, wordsOf(error))))

/** The exit code for the end of a run. */
export const exitOf = (reason: StopReason): Exit => {
  switch (reason) {
    case "completed":
    case "stopCondition":
      return "done"
    case "maxRounds":
    case "duplicateRounds":
      return "rounds"
    case "budget:tokens":
    case "budget:cost":
    case "budget:toolCalls":
    case "budget:rounds":
    case "budget:time":
      return "budget"
    case "suspended":
      return "waiting"
    case "refused":
      return "refused"
    case "length":
      return "cut"
  }
}
