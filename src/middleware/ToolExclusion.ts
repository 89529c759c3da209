/**
 * Removes tools from an agent and its sub-agents: they are neither offered nor run.
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
import type { ToolDefinition } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"

const name = "ToolExclusion"

/**
 * Excludes tools by name, in any spelling that a model may use, or by a fact about them: `({ annotations }) =>
 * annotations.runsCommands === true`. A name without a tool, in the agent or a sub-agent, fails its runs with
 * `InvalidAgent`. The loop answers a call of a removed tool like a call of an unknown tool.
 */
export const make = (
  tools: ReadonlyArray<string> | ((tool: Pick<ToolDefinition, "annotations" | "name">) => boolean)
): Middleware.Middleware => {
  const isExcluded =
    typeof tools === "function" ? tools : ({ name }: { readonly name: string }) => Middleware.names(tools, name)
  return Middleware.make({
    name,
    check: (_tools, reach) =>
      typeof tools === "function"
        ? undefined
        : Middleware.unknownTool("the tools that are excluded name", tools, reach),
    inherit: true,
    // Calls from before a crash were offered by an earlier run.
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map((call) =>
          isExcluded(call) ? Ruling.refuse("ToolExclusion", `There is no tool "${call.name}" here.`) : undefined
        )
      ),
    wrapModelCall: (request, next) => {
      const tools = request.tools.filter((tool) => !isExcluded(tool))
      return next(tools.length === request.tools.length ? request : { ...request, tools })
    }
  })
}
