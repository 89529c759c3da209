/** The outcome of an input to a durable agent. */
import type { Request } from "../core/Approval.ts"
import type { StopReason } from "../core/StopReason.ts"
import type { Usage } from "../core/Usage.ts"

/** The end of a run. Its messages are in the thread. */
export interface Outcome<out Output> {
  /** The decoded answer (text for an agent without an `output` schema); `undefined` without an answer. */
  readonly output: Output
  readonly text: string
  /** The reason for the end; `interrupted` if a person stopped the run. */
  readonly stopReason: StopReason | "interrupted"
  /** The requests that a suspended run waits for. */
  readonly pending: ReadonlyArray<Request>
  /** Like `rounds`, counts since the last input of the thread that was not a resumption. */
  readonly usage: Usage
  readonly rounds: number
}
