/** The result of a run. */
import type { Snapshot } from "./AgentState.ts"
import type { Request } from "./Approval.ts"
import type { Message } from "./Message.ts"
import type { StopReason } from "./StopReason.ts"
import type { Spent, Usage } from "./Usage.ts"

/**
 * The end of a run. `output` is the decoded answer (the text, for an agent without an `output` schema); `messages` the
 * whole conversation, fit to be the `history` of the next run; `newMessages` what this run added, the input included;
 * `state` can be given to the next run too. `usage` counts sub-agents, retries and side calls.
 *
 * A run that was suspended (only an agent with a suspending middleware can be) has no answer: `pending` says what it
 * waits for, in sub-agents too, and `output` is `undefined`, as its type says. `Agent.resume` resumes it.
 */
export interface AgentResult<out Output> {
  readonly output: Output
  readonly text: string
  readonly messages: ReadonlyArray<Message>
  readonly newMessages: ReadonlyArray<Message>
  readonly state: Snapshot
  readonly usage: Usage
  readonly rounds: number
  /** The work of the run and its sub-agents since the input, earlier runs of the same input included. */
  readonly spent: Spent
  readonly stopReason: StopReason
  readonly pending: ReadonlyArray<Request>
}
