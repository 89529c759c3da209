/** The failure of an ACP connection: of its program, its messages or its sessions. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/**
 * - `NotInstalled`: the package `@agentclientprotocol/sdk` is missing
 * - `NotStarted`: the program of an agent could not be started, or speaks no ACP
 * - `Closed`: the connection ended while an answer was open
 * - `Refused`: the other side answered with an error
 * - `NotFound`: there is no such session
 * - `Invalid`: a message violates the protocol
 * - `SignedOut`: the model has no key; somebody has to sign in first
 * - `Busy`: another prompt, or another process, works on the session
 * - `TimedOut`: the other side was silent for too long
 */
const Reason = Schema.Literals([
  "NotInstalled",
  "NotStarted",
  "Closed",
  "Refused",
  "NotFound",
  "Invalid",
  "SignedOut",
  "Busy",
  "TimedOut"
])

/** A connection, a session or a prompt failed. `method` names the message of the protocol, `detail` says what to do. */
export class AcpError extends TaggedError<AcpError>()("AcpError", {
  reason: Reason,
  method: Schema.optionalKey(Schema.String),
  detail: Schema.String
}) {
  override get message(): string {
    return this.method === undefined ? this.detail : `${this.method}: ${this.detail}`
  }
}
