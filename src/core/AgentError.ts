/** Failures of a run itself, beside those of the model (`ModelError`) and the middleware (their own errors). */
import * as Schema from "effect/Schema"
import { cut } from "../support/text/text.ts"
import { SessionError } from "./SessionError.ts"
import { StopReason } from "./StopReason.ts"

/**
 * - `InvalidAgent`: the agent can't run as it was made (a tool's name, two tools or slots of one name, a limit)
 * - `InvalidInput`: a run can't begin with what it was given (no input, one that ends with an ai message, a checkpoint
 *   without messages, a thread that nobody keeps, a decision that nobody asked for or that contradicts another)
 * - `InvalidState`: a slot of the state to go on from does not decode, when the run begins if the slot is declared,
 *   else when it is first used; `slot` names it. Earlier code stored something else there: have the slot's schema read
 *   that as well, or give the slot another name
 * - `Thread`: its thread could not be read or written; `error` says why
 * - `InvalidOutput`: the answer did not decode with the agent's `output` schema after its repairs; `raw` is its text
 * - `NoAnswer`: its answer was asked for (`Agent.answer`), and it refused, said nothing, or waits for a decision that
 *   nobody there can give; `text` is what it said
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("InvalidAgent", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidInput", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidState", { slot: Schema.String, problem: Schema.String }),
  Schema.TaggedStruct("Thread", { error: SessionError }),
  Schema.TaggedStruct("InvalidOutput", { raw: Schema.String, problem: Schema.String }),
  Schema.TaggedStruct("NoAnswer", { stopReason: StopReason, text: Schema.String })
])
export type Reason = typeof Reason.Type

/** A run could not begin, or could not end with the output it promises. */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  agent: Schema.String,
  reason: Reason
}) {
  override get message(): string {
    const { agent, reason } = this
    switch (reason._tag) {
      case "InvalidAgent":
        return `Agent "${agent}" can't run: ${reason.problem}`
      case "InvalidInput":
        return `Agent "${agent}" can't begin: ${reason.problem}`
      case "InvalidState":
        return `Agent "${agent}" can't go on from this state: slot "${reason.slot}": ${reason.problem}. Give the slot a schema that reads what earlier code stored as well, or another name to begin it anew`
      case "Thread":
        return `Agent "${agent}" can't keep its thread: ${reason.error.message}`
      case "InvalidOutput":
        return `Agent "${agent}" gave no valid output: ${reason.problem}`
      case "NoAnswer":
        return `Agent "${agent}" gave no answer (${reason.stopReason})${reason.text === "" ? "" : `: ${cut(reason.text, 500)}`}`
    }
  }
}

/** A message for a run that is over: it takes no more. */
export class RunEnded extends Schema.TaggedError<RunEnded>()("RunEnded", { runId: Schema.String }) {
  override get message(): string {
    return `Run ${this.runId} is over and takes no more messages; start a new one with its messages as history`
  }
}
