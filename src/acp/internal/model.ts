/** The data of a session: its agent, modes, options and commands. Public by `AcpServer`. */
import type * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import type * as Agent from "../../core/Agent.ts"
import type { Decision, Request } from "../../core/Approval.ts"
import type { JsonObject } from "../../core/Json.ts"
import type { Service as Sandbox } from "../../core/Sandbox.ts"
import type { Servers } from "../../mcp/McpConfig.ts"
import type { AcpError } from "../AcpError.ts"

/** A way to decide on calls that need a decision. */
export interface Mode {
  readonly id: string
  readonly name: string
  readonly description?: string | undefined
}

/**
 * Decides on calls before a person is asked.
 *
 * - `modes`: the modes that a client may choose. A client can't raise a session to a mode that is not listed
 * - `decide`: the decision of the mode and of rules; `undefined` asks the person
 * - `always`: an approval for good: the calls that it covers, in words, and the decision that keeps it
 */
export interface Gate {
  readonly modes: ReadonlyArray<Mode>
  readonly mode: () => string
  readonly setMode: (id: string) => void
  readonly decide: (request: Request) => Effect.Effect<Decision | undefined>
  readonly always: (
    request: Request
  ) => { readonly covers: string; readonly approve: Effect.Effect<Decision> } | undefined
}

/** An option of a session that a person chooses in the client: the model, the agent. */
export interface Setting {
  readonly id: string
  readonly name: string
  readonly description?: string | undefined
  /** Tells clients where to show it: `model`, `mode`, `thought_level`. */
  readonly category?: string | undefined
  readonly value: string
  readonly choices: ReadonlyArray<{
    readonly value: string
    readonly name: string
    readonly description?: string | undefined
  }>
}

/** The outcome of a slash command: a message to the agent, or Markdown to show. */
export type CommandOutcome =
  | { readonly _tag: "Send"; readonly input: Agent.Input }
  | { readonly _tag: "Show"; readonly markdown: string }

/** A question with options, for a person at the client. */
export interface Choice {
  readonly title: string
  /** Markdown for the decision. */
  readonly text: string
  readonly options: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly kind: "allow_once" | "allow_always" | "reject_once" | "reject_always"
  }>
}

/** Asks the person. Gives the id of an option, or `undefined` without an answer. */
export type Ask = (choice: Choice) => Effect.Effect<string | undefined>

/** A slash command. `argument` describes the text behind the name. */
export interface Command {
  readonly name: string
  readonly description: string
  readonly argument?: string | undefined
  readonly run: (argument: string, ask: Ask) => Effect.Effect<CommandOutcome, AcpError>
}

/**
 * An open session.
 *
 * - `agent`, `settings`, `commands`: what counts now; they are read before each turn
 * - `machine`: the files and commands of the agent. The client's own files and terminals come in front of it
 * - `metadata`: of a thread that the session creates
 * - `change`: chooses a value of a setting
 * - `prepare`: runs before each turn, in its scope: takes a lock, asks the person
 */
export interface Session {
  readonly agent: () => Agent.Agent<unknown, unknown, unknown>
  readonly machine: Sandbox
  readonly gate: Gate
  readonly metadata?: (() => JsonObject) | undefined
  readonly settings?: (() => ReadonlyArray<Setting>) | undefined
  readonly change?: ((id: string, value: string) => Effect.Effect<void, AcpError>) | undefined
  readonly commands?: (() => ReadonlyArray<Command>) | undefined
  readonly prepare?: ((ask: Ask) => Effect.Effect<void, AcpError, Scope>) | undefined
}

/**
 * A session that a client opens.
 *
 * - `threadId`: its id, which is the id of its thread
 * - `isNew`: `false` for a thread that is stored
 * - `cwd`, `folders`: the working folder, and further ones
 * - `servers`: the MCP servers that the client hands over
 */
export interface SessionOpening {
  readonly threadId: string
  readonly isNew: boolean
  readonly cwd: string
  readonly folders: ReadonlyArray<string>
  readonly servers: Servers
}
