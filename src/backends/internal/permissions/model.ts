/** The types of rules, decisions and questions; public by `Permissions`. */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import type { PathGlob } from "./glob.ts"

/** The subject of a rule. */
export type Operation = FileOperation | "execute"

/** The operations on files, as rules know them. */
export type FileOperation = "read" | "write"

/** Modes of a rule. `ask` is for a person (or the {@link Approver}) to decide, each time. */
export type Mode = "allow" | "deny" | "ask"

/**
 * A rule for files. `paths` are globs that begin with `/`, and braces in them hold no `/`. Where `read` asks, names can
 * be listed; `grep` leaves such files out, unless it is pointed at a path that the rule covers: then that is asked.
 */
export interface FileRule {
  readonly operations: ReadonlyArray<FileOperation>
  readonly paths: ReadonlyArray<string>
  readonly mode: Mode
}

/**
 * A rule for commands: all of them. What a command line will do can't be told from its text, so there are no patterns;
 * with `ask`, the one who is asked sees the command.
 */
export interface CommandRule {
  readonly operations: readonly ["execute"]
  readonly paths?: never
  readonly mode: Mode
}

/** A rule. */
export type Rule = FileRule | CommandRule

/** Rules in order: the first one that covers what is to be done decides, else the default (`allow`). */
export interface Options {
  readonly rules: ReadonlyArray<Rule>
  readonly default?: "allow" | "deny" | undefined
}

/** A rule, ready to decide. */
export interface Compiled {
  readonly rule: FileRule
  readonly index: number
  readonly globs: ReadonlyArray<PathGlob>
  /** The globs that earlier rules leave something to, for each operation of the rule. */
  readonly live: { readonly [operation in FileOperation]: ReadonlyArray<PathGlob> }
}

/** Rules, checked and ready to decide. */
export interface Policy {
  readonly rules: ReadonlyArray<Compiled>
  readonly otherwise: Decision
  readonly commands: Decision
}

/** A decision and the rule that it comes from; none if it is the default. */
export interface Decision {
  readonly mode: Mode
  readonly rule?: Rule | undefined
}

/** An operation with all that it was given. Paths are normal ones, but for those of `grep`, `upload` and `download`. */
export type Action =
  | { readonly operation: "read"; readonly path: string; readonly window?: Backend.Window | undefined }
  | { readonly operation: "write"; readonly path: string; readonly content: string }
  | { readonly operation: "edit"; readonly path: string; readonly replacements: ReadonlyArray<Backend.Replacement> }
  | { readonly operation: "delete"; readonly path: string; readonly recursive: boolean }
  | { readonly operation: "move"; readonly from: string; readonly to: string }
  | { readonly operation: "grep"; readonly query: Backend.GrepQuery }
  | {
      readonly operation: "upload"
      readonly files: ReadonlyArray<{ readonly path: string; readonly content: Uint8Array }>
    }
  | { readonly operation: "download"; readonly paths: ReadonlyArray<string> }
  | { readonly operation: "patch"; readonly plan: Backend.Plan }
  | { readonly operation: "execute"; readonly command: string; readonly options?: Sandbox.ExecuteOptions | undefined }

/**
 * An access that has to be allowed: an operation at a path (the real one, if a link was given), and the rule that asks.
 */
export interface Access {
  readonly operation: "read" | "write" | "execute"
  readonly path?: string | undefined
  readonly rule: Rule
}

/** A question: may this be done? All that rules ask about an operation is asked at once, before it does anything. */
export interface Request {
  readonly action: Action
  readonly accesses: ReadonlyArray<Access>
}

/** The answer. The message of a refusal is told to who called the operation: a model, as a rule. */
export type Answer = { readonly _tag: "Approved" } | { readonly _tag: "Refused"; readonly message: string }

/** The one who is asked. */
export interface Service {
  readonly ask: (request: Request) => Effect.Effect<Answer>
}

/** These rules can't be followed. `rule` is the index of the one that is wrong, `field` what is wrong about it. */
export class InvalidPermissions extends Schema.TaggedError<InvalidPermissions>()("InvalidPermissions", {
  rule: Schema.Union([Schema.Finite, Schema.Literal("default")]),
  field: Schema.Literals(["operations", "paths", "mode", "default"]),
  problem: Schema.String
}) {
  override get message(): string {
    const where = this.rule === "default" ? "default" : `rules[${this.rule}].${this.field}`
    return `These permissions can't be taken: ${where}: ${this.problem}`
  }
}
