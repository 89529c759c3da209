/**
 * Takes tools away from an agent and its sub-agents: they are neither offered nor run, whatever the model calls.
 *
 * ```ts
 * import { Agent, Tool } from "effect-deepagents"
 * import { ToolExclusion } from "effect-deepagents/middleware"
 *
 * declare const tools: ReadonlyArray<Tool.Tool>
 *
 * const reader = Agent.make({
 *   name: "reader",
 *   prompt: "You look and never touch.",
 *   tools,
 *   middleware: [ToolExclusion.make(["write_file", "edit_file", "execute"])]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"

/** The name of this middleware. */
const name = "ToolExclusion"

/**
 * Excludes tools by their names, in any spelling that a model may use for them. A name that no tool has, of the agent
 * or a sub-agent, fails its runs with `InvalidAgent`. What is taken out of a request can't be dispatched in its round:
 * the loop answers such a call as one to an unknown tool.
 */
export const make = (names: ReadonlyArray<string>): Middleware.Middleware => {
  const excluded = { has: (name: string) => Middleware.names(names, name) }
  return Middleware.make({
    name,
    check: (_tools, reach) => Middleware.unknownTool("the tools that are excluded name", names, reach),
    inherit: true,
    // Calls of a turn that an earlier run was given, before a crash, were offered by nobody here.
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map(({ name }) =>
          excluded.has(name) ? Ruling.refuse("ToolExclusion", `There is no tool "${name}" here.`) : undefined
        )
      ),
    wrapModelCall: (request, next) => {
      const tools = request.tools.filter((tool) => !excluded.has(tool.name))
      return next(tools.length === request.tools.length ? request : { ...request, tools })
    }
  })
}
