/**
 * Everything that can go wrong with files and commands, as one tagged error with a tagged reason.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Backend } from "effect-deepagents"
 *
 * const readme = Backend.Backend.use((backend) => backend.read("/README.md")).pipe(
 *   Effect.catchReason("BackendError", "NotFound", () => Effect.succeed(undefined))
 * )
 * ```
 */
import { dual } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"

/**
 * The reason that an operation failed. It changed nothing, except that `TimedOut` and `Unavailable` may leave an
 * operation on several files half done.
 *
 * - `NotFound`, `AlreadyExists`, `IsDirectory`, `NotDirectory`: the path has the wrong kind of entry
 * - `InvalidPath`, `InvalidPattern`: the path (the glob, the regular expression) is invalid
 * - `OutsideRoot`: the path would leave the backend, by `..`, `~` or a link; with `cwd`, it is not in the folders of a
 *   machine that the agent may use
 * - `PermissionDenied`: by the operating system, or by a rule
 * - `NotUnique`, `NoMatch`: the text to replace occurs several times (`lines`, counted from 1), or not at all
 * - `TooLarge`: `size` and `limit` in bytes
 * - `NotText`: the file is binary
 * - `Conflict`: the file has changed since the version that the caller knows
 * - `Unsupported`: this backend lacks the operation
 * - `TimedOut`: `limit` in milliseconds
 * - `Unavailable`: the disk is full, the connection is lost, the service returned an invalid answer
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("NotFound", {}),
  Schema.TaggedStruct("AlreadyExists", {}),
  Schema.TaggedStruct("IsDirectory", {}),
  Schema.TaggedStruct("NotDirectory", {}),
  Schema.TaggedStruct("InvalidPath", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidPattern", { pattern: Schema.String, problem: Schema.String }),
  Schema.TaggedStruct("OutsideRoot", { cwd: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("PermissionDenied", {}),
  Schema.TaggedStruct("NotUnique", { count: Schema.Finite, lines: Schema.Array(Schema.Finite) }),
  Schema.TaggedStruct("NoMatch", { hint: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("TooLarge", { size: Schema.Finite, limit: Schema.Finite }),
  Schema.TaggedStruct("NotText", { mimeType: Schema.String }),
  Schema.TaggedStruct("Conflict", {}),
  Schema.TaggedStruct("Unsupported", {}),
  Schema.TaggedStruct("TimedOut", { limit: Schema.Finite }),
  Schema.TaggedStruct("Unavailable", {})
])
export type Reason = typeof Reason.Type

const shownLines = 20

const listLines = (lines: ReadonlyArray<number>): string => {
  const all = [...new Set(lines)]
  const more = all.length > shownLines ? ", …" : ""
  return `${all.length === 1 ? "line" : "lines"} ${all.slice(0, shownLines).join(", ")}${more}`
}

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "NotFound":
      return "there is no such file or directory"
    case "AlreadyExists":
      return "this path exists already; choose another path, or delete it first"
    case "IsDirectory":
      return "this is a directory, not a file"
    case "NotDirectory":
      return "this is a file, not a directory"
    case "InvalidPath":
      return `this is not a valid path: ${reason.problem}`
    case "InvalidPattern":
      return `the pattern ${JSON.stringify(reason.pattern)} is not valid: ${reason.problem}`
    case "OutsideRoot":
      return reason.cwd === undefined
        ? "this path leads out of the root; write it from the root, without '..' or '~'"
        : `this is outside of ${reason.cwd} and of the folders that were added to it`
    case "PermissionDenied":
      return "permission denied"
    case "NotUnique":
      return `the text to replace is there ${reason.count} times (${listLines(reason.lines)}); give more of its surroundings, or replace all`
    case "NoMatch":
      return `the text to replace is not in the file${reason.hint === undefined ? "" : `: ${reason.hint}`}`
    case "TooLarge":
      return `too large: ${reason.size} bytes, the limit is ${reason.limit}`
    case "NotText":
      return `this is not a text file (${reason.mimeType})`
    case "Conflict":
      return "the file was changed since it was read; read it again"
    case "Unsupported":
      return "this backend can't do that"
    case "TimedOut":
      return `not done within ${reason.limit} ms; narrow it down`
    case "Unavailable":
      return "the backend is not available"
  }
}

/**
 * An operation failed. `operation` is its name (`read`), `path` the path as it was given, `detail` further facts, for
 * the model too; `cause` stays in the log.
 */
export class BackendError extends TaggedError<BackendError>()("BackendError", {
  operation: Schema.String,
  path: Schema.String,
  reason: Reason,
  detail: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Marks the error for another copy of this module, such as that of an extension of a program. */
  get "~effect-deepagents/BackendError"(): true {
    return true
  }

  override get message(): string {
    const detail = this.detail === undefined ? "" : ` (${this.detail})`
    return `${this.operation} ${this.path}: ${explain(this.reason)}${detail}`
  }
}

/** Makes the failure of an operation at a path. */
export const make = (
  operation: string,
  path: string,
  reason: Reason,
  more?: { readonly detail?: string | undefined; readonly cause?: unknown }
): BackendError =>
  new BackendError({
    operation,
    path,
    reason,
    // The keys are optional, as errors are written as JSON: `undefined` would come back as `null`.
    ...defined({ detail: more?.detail, cause: more?.cause })
  })

/** The same failure, reported by another operation or of another path: for a backend that stands before another one. */
export const at: {
  (operation: string, path: string): (error: BackendError) => BackendError
  (error: BackendError, operation: string, path: string): BackendError
} = dual(3, (error: BackendError, operation: string, path: string): BackendError =>
  error.operation === operation && error.path === path ? error : make(operation, path, error.reason, error)
)

/** Checks for a {@link BackendError}. */
export const isBackendError = (value: unknown): value is BackendError =>
  Predicate.hasProperty(value, "~effect-deepagents/BackendError")
