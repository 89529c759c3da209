/** The schema of outcomes, for storage and messages. */
import * as Schema from "effect/Schema"
import type { AgentResult } from "../../core/AgentResult.ts"
import { Request } from "../../core/Approval.ts"
import { StopReason } from "../../core/StopReason.ts"
import { Usage } from "../../core/Usage.ts"
import type { Outcome } from "../Outcome.ts"

/** The end of a run: a `StopReason`, or `interrupted` if a person stopped it. */
const Ended = Schema.Union([StopReason, Schema.Literal("interrupted")])
export type RunOutcome = typeof Ended.Type

/** Makes the schema of outcomes from the schema of their output. */
export const schema = <Output>(output: Schema.ConstraintCodec<Output, unknown>) =>
  Schema.Struct({
    output,
    text: Schema.String,
    stopReason: Ended,
    pending: Schema.Array(Request),
    usage: Usage,
    rounds: Schema.Finite
  })

/** Makes the outcome of a run. */
export const fromResult = <Output>(result: AgentResult<Output>): Outcome<Output> => ({
  output: result.output,
  text: result.text,
  stopReason: result.stopReason,
  pending: result.pending,
  usage: result.usage,
  rounds: result.rounds
})
