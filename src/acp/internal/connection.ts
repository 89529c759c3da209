/** A connection at work, for the methods of the protocol. */
import type * as Acp from "@agentclientprotocol/sdk"
import type * as Effect from "effect/Effect"
import type { SessionError } from "../../core/SessionError.ts"
import type { AcpError } from "../AcpError.ts"
import type { Client } from "./client.ts"
import { fail, type Registry } from "./registry.ts"
import type { Live } from "./session.ts"

export const ofStore = (method: string) => (error: SessionError) => fail("Refused", method, error.message)

/** A connection at work. */
export interface Connection {
  readonly registry: Registry
  readonly makeId: Effect.Effect<string>
  readonly clientOf: (agent: Acp.AgentContext) => Client
  /** Answers a request. The client may withdraw it by the signal. */
  readonly answer: <A>(work: Effect.Effect<A, AcpError>, signal: AbortSignal) => Promise<A>
  /** Tells the client the commands, once it knows of the session. */
  readonly announce: (requestId: string | number | null, live: Live) => void
}

/** Methods of the protocol's draft are unknown to the package: their handlers decode. */
export const unparsed = (params: unknown): unknown => params
