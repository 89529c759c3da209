/** A connection at work, for the methods of the protocol. */
import type * as Acp from "@agentclientprotocol/sdk"
import type * as Effect from "effect/Effect"
import type { AcpError } from "../AcpError.ts"
import type { Client } from "./client.ts"
import type { Registry } from "./registry.ts"
import type { Live } from "./session.ts"

/** A connection at work. */
export interface Connection {
  readonly registry: Registry
  readonly makeId: Effect.Effect<string>
  readonly clientOf: (agent: Acp.AgentContext) => Client
  /** Tells the client the commands, once it knows of the session. */
  readonly announce: (requestId: string | number | null, live: Live) => void
}

/** A request of the client. */
export type Request<Method extends Acp.AgentRequestMethod> = Acp.AgentRequestContext<
  Acp.AgentRequestParamsByMethod[Method]
>

/** A request with parameters of the protocol's draft. The package does not know them, so the method decodes them. */
export type Draft = Acp.AgentRequestContext<unknown>

/** The methods of the protocol's draft, and methods with parameters of the draft. */
export const drafts = [
  "session/fork",
  "session/list",
  "session/archive",
  "session/unarchive",
  "session/set_title"
] as const

type Stable =
  | "session/close"
  | "session/delete"
  | "session/load"
  | "session/new"
  | "session/prompt"
  | "session/resume"
  | "session/set_config_option"
  | "session/set_mode"

/** The methods that need a session, or the store of sessions. */
export type Methods = {
  readonly [Method in Stable]: (
    request: Request<Method>
  ) => Effect.Effect<Acp.AgentRequestResponsesByMethod[Method], AcpError>
} & {
  readonly [Method in (typeof drafts)[number]]: (request: Draft) => Effect.Effect<unknown, AcpError>
} & {
  /** Cancels the turn of a session. */
  readonly cancel: (sessionId: string) => Effect.Effect<void>
}
