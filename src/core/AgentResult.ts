/** The result of a run. */
import type { Snapshot } from "./AgentState.ts"
import type { Request } from "./Approval.ts"
import type { Message } from "./Message.ts"
import type { StopReason } from "./StopReason.ts"
import type { Spent, Usage } from "./Usage.ts"

/**
 * The end of a run.
 *
 * - `output`: the decoded answer; the text, for an agent without an `output` schema
 * - `messages`: the whole conversation, ready to be the `history` of the next run
 * - `newMessages`: the messages that this run added, its input included
 * - `state`: the state, ready for the next run
 * - `usage`: includes sub-agents, retries and side calls
 *
 * A suspended run has no answer: `output` is `undefined`, and `pending` lists the open requests, those of sub-agents
 * included. `Agent.resume` resumes it.
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
