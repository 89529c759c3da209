/**
 * The failure of a tool that the model is told about.
 */
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
 */
export class ToolError extends Schema.TaggedError<ToolError>()("ToolError", {
  reason: Schema.Literals(["Failed", "InvalidArguments", "UnknownTool", "TimedOut", "Defect", "Rejected"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** Makes the failure that a tool's `execute` usually wants. */
export const make = (message: string): ToolError => new ToolError({ reason: "Failed", message })

/** Whether a value is a {@link ToolError}. */
export const isToolError = (value: unknown): value is ToolError => value instanceof ToolError

/**
 * Any failure as a {@link ToolError}: its tag and message for the model, the value itself as the cause (which stays in
 * the log). Stack traces and causes are not told to the model.
 */
export const fromUnknown = (error: unknown): ToolError => {
  if (isToolError(error)) return error
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : undefined
  const message =
    Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== ""
      ? error.message
      : typeof error === "string"
        ? error
        : undefined
  const text = tag === undefined ? (message ?? "the tool failed") : message === undefined ? tag : `${tag}: ${message}`
  return new ToolError({ reason: "Failed", message: text, cause: error })
}
