/**
 * Makes the tool `calculator` for arithmetic. It never runs code.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Calculator } from "effect-deepagents/workspace"
 *
 * const clerk = Agent.make({ name: "clerk", prompt: "You check invoices.", tools: [Calculator.make()] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "../core/Tool.ts"
import * as ToolError from "../core/ToolError.ts"
import { evaluate } from "./internal/calculator/evaluate.ts"

/** Formats a number with 15 digits, since further digits are inexact. */
const formatNumber = (value: number): string =>
  Number.isSafeInteger(value)
    ? String(value)
    : Math.abs(value) > Number.MAX_SAFE_INTEGER
      ? `about ${Number(value.toPrecision(15)).toExponential()}`
      : String(Number(value.toPrecision(15)))

/** Makes the tool. */
export const make = (): Tool.Tool =>
  Tool.make("calculator", {
    description:
      "Works out a sum: numbers, + - * / % ^, parentheses, sqrt, abs, round, floor, ceil, exp, ln, log10, sin, cos, tan, pi, e.",
    parameters: { expression: Schema.String.annotate({ description: "For example (1 + 2.5) * 3 ^ 2" }) },
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    execute: ({ expression }) =>
      expression.length > 10_000
        ? Effect.fail(ToolError.make("expression is too long: at most 10,000 characters"))
        : Result.match(evaluate(expression), {
            onFailure: (problem) => Effect.fail(ToolError.make(problem)),
            onSuccess: (value) =>
              Number.isFinite(value)
                ? Effect.succeed(formatNumber(value))
                : Effect.fail(
                    ToolError.make(
                      "the result is no finite number: a division by zero, a root of less than zero, or too large"
                    )
                  )
          })
  })
