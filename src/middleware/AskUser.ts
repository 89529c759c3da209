/**
 * Lets the model ask the user a question, with choices, and waits for the answer.
 *
 * `make` asks the `Approvals` service while the run waits; `suspending` ends the run until `Agent.resume` brings the
 * answer. The question comes as a request on a call of `ask_user` with `question` and `choices` among its arguments;
 * answer it with `Approval.respond`, or `Approval.reject` if nobody will.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { AskUser } from "effect-deepagents/middleware"
 *
 * const planner = Agent.make({ name: "planner", prompt: "You plan trips.", middleware: [AskUser.suspending()] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Approvals } from "../core/Approval.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Tool from "../core/Tool.ts"
import * as ToolError from "../core/ToolError.ts"
import { once } from "../support/once.ts"
import { escaped } from "../support/untrusted.ts"

/**
 * The name of this middleware.
 *
 * @category constants
 * @since 0.1.0
 */
export const name = "AskUser"

/**
 * The name of the tool.
 *
 * @category constants
 * @since 0.1.0
 */
export const toolName = "ask_user"

const askUser = () =>
  Tool.make(toolName, {
    description:
      "Asks the user one question and waits for the answer. Ask only for what you can't find out, and what changes what you do.",
    parameters: {
      question: Schema.String.check(Schema.isPattern(/\S/u, { expected: "a question in words" })).annotate({
        description: "The question, complete in itself."
      }),
      choices: Schema.optionalKey(
        Schema.Array(Schema.String).annotate({ description: "Answers to choose from. The user may give another." })
      )
    },
    annotations: { readOnly: true },
    execute: () => Effect.fail(ToolError.make("The user did not answer."))
  })

const describe = ({ arguments: { question } }: Middleware.PreparedCall): string =>
  typeof question === "string" ? escaped(question) : toolName

const parts = once((): Middleware.Parts<never, never, Middleware.AskingGate> => ({
  name,
  tools: [askUser()],
  gateToolCalls: (_run, calls) =>
    Effect.succeed(
      calls.map((call) =>
        call.name === toolName
          ? Middleware.suspend(describe(call), {
              allow: ["respond", "reject"]
            })
          : Middleware.allow
      )
    )
}))

/**
 * Asks the `Approvals` service while the run waits.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): Middleware.Middleware<never, Approvals> => Middleware.asking(parts())

/**
 * Ends the run until the user has answered.
 *
 * @category constructors
 * @since 0.1.0
 */
export const suspending = (): Middleware.Suspending => Middleware.suspending(parts())
