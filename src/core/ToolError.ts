/** The failure of a tool that the model is told about. */
import * as Cause from "effect/Cause"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/**
 * A tool could not do what was asked. `message` is what the model reads: say what was wrong and what would be right.
 *
 * - `Failed`: the tool's own failure
 * - `InvalidArguments`: the arguments did not decode; the message names each path
 * - `UnknownTool`: no tool of that name is offered
 * - `TimedOut`, `Defect`: it did not come to an end; whether it had an effect is not known
 * - `Rejected`: it waits for a decision that nobody can give here
 *
 * `isRetryable` says that the same call may go better the next time (say so in the message too): then the model may
 * make it again at once, which is otherwise taken for going in circles.
 */
export class ToolError extends Schema.TaggedError<ToolError>()("ToolError", {
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
}) {}

/**
 * Makes the failure that a tool's `execute` usually wants. `isRetryable`: the same call may go better the next time.
 */
export const make = (message: string, options?: { readonly isRetryable?: boolean | undefined }): ToolError =>
  new ToolError({ reason: "Failed", message, ...(options?.isRetryable === true ? { isRetryable: true } : {}) })

/** Tells whether a value is a {@link ToolError}. */
export const isToolError = (value: unknown): value is ToolError => value instanceof ToolError

/** A promise rejects with anything, which Effect wraps in an error of its own: what it was is what there is to say. */
const unwrapped = (error: unknown): unknown => {
  let inner = error
  for (let depth = 0; depth < 10 && Cause.isUnknownError(inner) && inner.cause !== undefined; depth++) {
    inner = inner.cause
  }
  return inner
}

/**
 * Any failure as a {@link ToolError}: its tag and message for the model, the value itself as the cause (which stays in
 * the log). Of a failed `Effect.tryPromise`, that is what the promise was rejected with. Stack traces and causes are
 * not told to the model. An error that says `isRetryable` keeps it.
 */
export const fromUnknown = (given: unknown): ToolError => {
  const error = unwrapped(given)
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
