/**
 * The tool `skeleton`: say in one sentence what it does, as a user would search for it.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Skeleton } from "effect-deepagents/workspace"
 *
 * const agent = Agent.make({ name: "agent", prompt: "You help.", tools: [Skeleton.make()] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "../../src/core/Tool.ts"
import * as ToolError from "../../src/core/ToolError.ts"

/** Makes the tool. Its annotations decide who may have it: say whether it changes something. */
export const make = (): Tool.Tool =>
  Tool.make("skeleton", {
    description: "Repeats a text.",
    parameters: { text: Schema.String.annotate({ description: "The text to repeat" }) },
    annotations: { readOnly: true },
    execute: ({ text }) =>
      text === "" ? ToolError.make("There is no text to repeat; give one") : Effect.succeed(`${text}, ${text}`)
  })
