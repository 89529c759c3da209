/** Hooks as values: events, answers, handlers. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../core/Json.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"

/** The events of hooks, in the names of Claude Code. */
export const events = [
  "SessionStart",
  "SessionEnd",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "Stop",
  "SubagentStop",
  "PreCompact",
  "Notification"
] as const

/**
 * The moment at which a hook runs.
 *
 * - `SessionStart`, `SessionEnd`: a session begins or ends. A run fires the first, a program the second by `fire`
 * - `UserPromptSubmit`: before the model reads a message of the user
 * - `PreToolUse`, `PostToolUse`: before a call is ruled on, and after it ran
 * - `Stop`, `SubagentStop`: the agent, or a sub-agent, has answered
 * - `PreCompact`: before a summary of the conversation is written
 * - `Notification`: a person is waited for; a program fires it by `fire`
 */
export type HookEvent = (typeof events)[number]

/** The answer of a hook. */
export interface Verdict {
  /** Whether the call, the message or the end may pass. `allow` never outvotes another source. Default: no word on it. */
  readonly decision?: "allow" | "ask" | "deny" | undefined
  /** The reason, which the model or the person reads. */
  readonly reason?: string | undefined
  /** Arguments in place of the call's own. They are decoded and ruled on again. */
  readonly input?: JsonObject | undefined
  /** Text that the model reads too. */
  readonly context?: ReadonlyArray<string> | undefined
  /** Ends the run with this text as its answer. */
  readonly stop?: string | undefined
}

/** A hook that gave no answer: it failed, was late, or said what can't be read. */
export class HookFailed extends TaggedError<HookFailed>()("HookFailed", {
  hook: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The hook ${JSON.stringify(this.hook)} failed: ${this.problem}`
  }
}

/** The work of a hook. `name` is shown in messages. */
export interface Handler<out R = never> {
  readonly name: string
  readonly run: (input: JsonObject) => Effect.Effect<Verdict, HookFailed, R>
}

/** A hook. */
export interface Hook<out R = never> {
  /** The event at which it runs. */
  readonly event: HookEvent
  /**
   * The tools (or sources, triggers) that it is for: names, `|` between them, `*` for any part. The library's names and the names in
   * Claude Code fit. Default: all.
   */
  readonly matcher?: string | undefined
  /** The work: `Hooks.command`, `Hooks.http`, or a name and an effect. */
  readonly handler: Handler<R>
  /** A hook that fails refuses the call, the message or the end. Default: `false`. */
  readonly blocking?: boolean | undefined
  /** The time that it has. Default: 60 seconds. */
  readonly timeout?: Duration.Input | undefined
}
