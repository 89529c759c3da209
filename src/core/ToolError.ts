/** The failure of a tool that the model is told about. */
import * as Cause from "effect/Cause"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/**
 * A tool could not do its work. The model reads `message`: say the problem and the correction.
 *
 * - `Failed`: the tool's own failure
 * - `InvalidArguments`: the arguments did not decode; the message names each path
 * - `UnknownTool`: no such tool is offered
 * - `TimedOut`, `Defect`: the tool did not finish; it may have had an effect
 * - `Rejected`: the call needs a decision that nobody here can give
 * - `UnknownOutcome`: an earlier run was cut off in the call
 *
 * `isRetryable` allows the model to repeat the same call at once; otherwise that counts as going in circles.
 */
export class ToolError extends TaggedError<ToolError>()("ToolError", {
  reason: Schema.Literals([
    "Failed",
    "InvalidArguments",
    "UnknownTool",
    "TimedOut",
    "Defect",
    "Rejected",
    "UnknownOutcome"
  ]),
  message: Schema.String,
  isRetryable: Schema.optionalKey(Schema.Boolean),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Marks the error for another copy of this module, such as that of an extension of a program. */
  get "~effect-deepagents/ToolError"(): true {
    return true
  }
}

/** Makes the failure that a tool's `execute` usually wants. */
export const make = (
  message: string,
  options?: {
    /** True if the same call may succeed the next time. Default: unknown. */
    readonly isRetryable?: boolean | undefined
  }
): ToolError =>
  new ToolError({ reason: "Failed", message, ...(options?.isRetryable === true ? { isRetryable: true } : {}) })

/** Tells whether a value is a {@link ToolError}. */
export const isToolError = (value: unknown): value is ToolError =>
  Predicate.hasProperty(value, "~effect-deepagents/ToolError")

/** A rejected promise may carry anything, wrapped in an error of Effect: the innermost cause is the message. */
const unwrapped = (error: unknown): unknown => {
  let inner = error
  for (let depth = 0; depth < 10 && Cause.isUnknownError(inner) && inner.cause !== undefined; depth++) {
    inner = inner.cause
  }
  return inner
}

/**
 * Converts any failure to a {@link ToolError}. The model reads its tag and message; the value stays in the log as the
 * cause. For `Effect.tryPromise` that value is the promise's rejection. `isRetryable` is kept.
 */
export const fromUnknown = (failure: unknown): ToolError => {
  const error = unwrapped(failure)
  if (isToolError(error)) return error
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : undefined
  const message =
    Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== ""
      ? error.message
      : typeof error === "string"
        ? error
        : undefined
  const text = tag === undefined ? (message ?? "the tool failed") : message === undefined ? tag : `${tag}: ${message}`
  const isRetryable = Predicate.hasProperty(error, "isRetryable") && error.isRetryable === true
  return new ToolError({ reason: "Failed", message: text, cause: error, ...(isRetryable ? { isRetryable } : {}) })
}
