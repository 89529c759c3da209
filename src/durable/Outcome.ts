/** The outcome of an input to a durable agent, as it is stored and sent from process to process. */
import * as Schema from "effect/Schema"
import type { AgentResult } from "../core/AgentResult.ts"
import { Request } from "../core/Approval.ts"
import { StopReason } from "../core/StopReason.ts"
import { Usage } from "../core/Usage.ts"

/** The end of a run: a `StopReason`, or `interrupted` if a person stopped it. */
export const Ended = Schema.Union([StopReason, Schema.Literal("interrupted")])
/** A value of the schema {@link Ended}. */
export type Ended = typeof Ended.Type

/**
 * The end of a run, without its messages: these are in the thread. `output` is the decoded answer (the text, for an
 * agent without an `output` schema), `undefined` if there is none; `usage` and `rounds` count since the thread's last
 * input that was not resumed. A suspended run waits for decisions on `pending`.
 */
export interface Outcome<out Output> {
  readonly output: Output
  readonly text: string
  readonly stopReason: Ended
  readonly pending: ReadonlyArray<Request>
  readonly usage: Usage
  readonly rounds: number
}

/** The schema of outcomes with outputs of a schema. */
export const schema = <Output>(output: Schema.ConstraintCodec<Output, unknown>) =>
  Schema.Struct({
    output,
    text: Schema.String,
    stopReason: Ended,
    pending: Schema.Array(Request),
    usage: Usage,
    rounds: Schema.Finite
  })

/** The outcome of a run. */
export const fromResult = <Output>(result: AgentResult<Output>): Outcome<Output> => ({
  output: result.output,
  text: result.text,
  stopReason: result.stopReason,
  pending: result.pending,
  usage: result.usage,
  rounds: result.rounds
})
