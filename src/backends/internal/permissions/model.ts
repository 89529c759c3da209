/** The types of rules on files, and of the questions that they ask; public by `Permissions`. */
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import * as Ruling from "../../../core/Ruling.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import type { PathGlob } from "./glob.ts"

/** The operations on files, as rules know them. */
export type FileOperation = "read" | "write"

/**
 * A rule for files, with the fields of every rule (see `Ruling.Rule`). Where `read` asks, names can be listed. `grep`
 * leaves such files out, unless the rule covers its path: then it asks.
 */
export const FileRule = Schema.Struct({
  /** The operations that the rule covers. */
  operations: Schema.Array(Schema.Literals(["read", "write"])),
  /** Globs of whole paths. They begin with `/`, and braces in them hold no `/`. */
  paths: Schema.Array(Schema.String),
  ...Ruling.Rule.fields
})
export interface FileRule extends Schema.Schema.Type<typeof FileRule> {}

/** A rule for all commands. It has no patterns, because the text of a command does not show its effects. */
export interface CommandRule extends Ruling.Rule {
  /** The operation that the rule covers. */
  readonly operations: readonly ["execute"]
  /** Never: a command can't be held to paths. */
  readonly paths?: never
}

/** Rules in order: the first that covers a path decides, else the default. */
export interface Options {
  /** The rules. The first that covers a path decides. */
  readonly rules: ReadonlyArray<FileRule | CommandRule>
  /** The ruling on what no rule covers. Default: `"allow"`. */
  readonly default?: "allow" | "refuse" | undefined
}

/** A rule that is ready to decide. */
export interface CompiledRule {
  readonly rule: FileRule
  readonly ruling: Ruling.Ruling
  readonly index: number
  readonly globs: ReadonlyArray<PathGlob>
  /** The globs that earlier rules leave something to, for each operation of the rule. */
  readonly live: { readonly [operation in FileOperation]: ReadonlyArray<PathGlob> }
}

/** Checked rules that are ready to decide. */
export interface Rules {
  readonly files: ReadonlyArray<CompiledRule>
  readonly otherwise: Ruling.Ruling
  readonly commands: Ruling.Ruling
}

/** An operation with its arguments. Paths are normal, except in `grep`, `upload` and `download`. */
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

/** An access that needs an approval: an operation at a real path, and the ruling that asks. */
export interface Access {
  readonly operation: FileOperation | "execute"
  readonly path?: string | undefined
  readonly ruling: Ruling.Ask
}

/** These rules can't be followed. `rule` is the index of the wrong rule, `field` its wrong field. */
export class InvalidPermissions extends TaggedError<InvalidPermissions>()("InvalidPermissions", {
  rule: Schema.Union([Schema.Finite, Schema.Literal("default")]),
  field: Schema.Literals(["operations", "paths", "ruling", "default", "options"]),
  problem: Schema.String
}) {
  override get message(): string {
    if (this.field === "options") return `These permissions can't be taken: ${this.problem}`
    const where = this.rule === "default" ? "default" : `rules[${this.rule}].${this.field}`
    return `These permissions can't be taken: ${where}: ${this.problem}`
  }
}
