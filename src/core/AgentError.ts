/** Failures of a run itself. The model fails with `ModelError`, middleware with its own errors. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import { cut } from "../support/text/text.ts"
import { SessionError } from "./SessionError.ts"
import { StopReason } from "./StopReason.ts"

/**
 * - `InvalidAgent`: the agent can't run (a tool's name, two tools or slots of one name, a limit)
 * - `InvalidInput`: the run can't begin (empty input, input that ends with an ai message, a checkpoint without
 *   messages, a thread without a journal, an unknown or contradictory decision)
 * - `InvalidState`: the `slot` of a stored state does not decode. Earlier code stored another type: let the slot's
 *   schema read both, or rename the slot
 * - `Thread`: the thread could not be read or written; `error` says why
 * - `InvalidOutput`: the answer does not decode with the `output` schema, even after repairs; `raw` is its text
 * - `NoAnswer`: `Agent.answer` got no answer: the sub-agent refused, said nothing or waits for a decision; or a
 *   used-up budget ended an agent with an `output` schema before its first turn. `text` is its last text
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
export class AgentError extends TaggedError<AgentError>()("AgentError", {
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
        return `Agent "${agent}" can't go on from this state: slot "${reason.slot}": ${reason.problem}. Let its schema also read the earlier values, or give the slot another name`
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
export class RunEnded extends TaggedError<RunEnded>()("RunEnded", { runId: Schema.String }) {
  override get message(): string {
    return `Run ${this.runId} is over and takes no more messages; start a new one with its messages as history`
  }
}
