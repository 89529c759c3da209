/**
 * The place where scripts compute: the service that code mode and workflows run on. `NodeScripts.layer` gives it on
 * Node, in threads of QuickJS.
 *
 * A script has no access to its host. It computes until all of its promises wait, and then the host reads what the
 * script asked for.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Json } from "../core/Json.ts"
import { TaggedError } from "../support/effect/taggedError.ts"

/**
 * A script ended without a result.
 *
 * - `Syntax`, `Threw`: the script is wrong, or failed itself
 * - `Time`, `Memory`, `Size`, `Calls`: it passed a limit
 * - `Stuck`: it waits for a promise that nobody settles
 * - `Crashed`: its thread broke
 * - `Unavailable`: no thread could be started
 */
export class ScriptError extends TaggedError<ScriptError>()("ScriptError", {
  reason: Schema.Literals(["Syntax", "Threw", "Time", "Memory", "Size", "Calls", "Stuck", "Crashed", "Unavailable"]),
  message: Schema.String,
  /** The stack trace inside of the script. */
  stack: Schema.optionalKey(Schema.String)
}) {}

/** Limits of one script. */
export interface Limits {
  /** The memory of the script, in bytes. Default: 64 MiB. */
  readonly memory?: number | undefined
  /** The time in which the script computes; waiting does not count. Default: 5 seconds. */
  readonly time?: Duration.Input | undefined
  /** The most calls of tools, agents and questions. Default: 256. */
  readonly calls?: number | undefined
}

/** A script before it runs. */
export interface Program {
  /** TypeScript or JavaScript: the body of an async function. */
  readonly source: string
  /** The value of `args`. */
  readonly args: Json
  /** The seed of `Math.random`. */
  readonly seed: number
  /** The time at which the script's clock begins, in milliseconds since the epoch. */
  readonly now: number
  /** The names of the tools that `tools` lists. */
  readonly tools: ReadonlyArray<string>
  readonly limits: Limits
}

/** A call that a script has begun and waits for. */
export interface ScriptCall {
  readonly id: number
  readonly kind: string
  readonly name: string
  readonly given: Json
}

/** The answer to a call: its value, or the error that the script's promise is rejected with. */
export type Answer =
  | { readonly id: number; readonly value: Json }
  | {
      readonly id: number
      readonly error: { readonly name: string; readonly message: string; readonly reason?: string }
    }

/** A line that a script printed, or the title of a phase that it began. */
export interface ScriptLine {
  readonly kind: "text" | "phase"
  readonly text: string
}

/** The state of a script that computes no more: what it began and printed, and its result once it has one. */
export interface Rest {
  readonly asked: ReadonlyArray<ScriptCall>
  readonly told: ReadonlyArray<ScriptLine>
  readonly result?: { readonly value: Json } | undefined
}

/** A script that runs. One call at a time; each returns when the script rests. */
export interface Script {
  readonly begin: Effect.Effect<Rest, ScriptError>
  readonly settle: (answers: ReadonlyArray<Answer>) => Effect.Effect<Rest, ScriptError>
}

/** Opens scripts. A script is over when its scope closes. */
export class Scripts extends Context.Service<
  Scripts,
  { readonly open: (program: Program) => Effect.Effect<Script, ScriptError, Scope.Scope> }
>()("effect-deepagents/Scripts") {}
