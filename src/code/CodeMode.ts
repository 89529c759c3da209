/**
 * Lets a model write programs over tools and sub-agents: one call in place of many. Only the printed and
 * returned values reach the conversation.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Tool } from "effect-deepagents"
 * import { CodeMode } from "effect-deepagents/code"
 * import * as NodeScripts from "effect-deepagents/code/NodeScripts"
 *
 * const weather = Tool.make("weather", {
 *   description: "Tells the weather of a city",
 *   parameters: { city: Schema.String },
 *   execute: ({ city }) => Effect.succeed(`sunny in ${city}`),
 *   annotations: { readOnly: true }
 * })
 *
 * const agent = Agent.make({
 *   name: "assistant",
 *   prompt: "You answer questions.",
 *   middleware: [CodeMode.make({ tools: [weather] })]
 * })
 *
 * const program = Agent.run(agent, "Where is it sunny: Ulm, Bonn or Kiel?").pipe(Effect.provide(NodeScripts.layer()))
 * ```
 */
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { agentTool } from "./internal/answers.ts"
import * as Continued from "./internal/continued.ts"
import { executeScript } from "./internal/execute.ts"
import { describeWorld } from "./internal/language.ts"
import { findLimitProblem } from "./internal/limits.ts"
import { definitionOf, makeCatalogue } from "./internal/setup.ts"
import * as shapes from "./internal/shapes.ts"
import { bindSlot } from "./internal/slots.ts"
import * as Values from "./internal/values.ts"
import type { Limits, Scripts } from "./Scripts.ts"

const name = "CodeMode"

/** The name of the tool. */
export const toolName = "run_script"

/** Options of code mode. */
export interface Options<Tools, Agents> {
  /**
   * Tools for scripts alone: the model sees their declarations in place of the tools. The other tools of the agent are
   * there for scripts, too. Default: none.
   */
  readonly tools?: Tools | undefined
  /** Agents that scripts run by `agent(…)`; without a name the first one. Default: none. */
  readonly agents?: Agents | undefined
  /**
   * Has a person approve each script as a whole. The script is rehearsed first: reads are done, changes of files stay in
   * a copy, and nothing acts. The person sees all effects with the diffs of the files, and the script then does these
   * and nothing else. Default: `false`, each call is asked about by its own rules.
   */
  readonly review?: boolean | undefined
  /**
   * How long values of `store` last: for the scripts of the `thread`, of the `turn` (until the next input), or of one
   * `call`, for its script alone. Default: `thread`.
   */
  readonly store?: "thread" | "turn" | "call" | undefined
  /** Limits of one script. Default: see each limit. */
  readonly limits?:
    | (Limits & {
        /**
         * The most characters of a result. A longer one is stored in a file of the agent's backend, and the model sees
         * its beginning, its end and the path. Default: 30,000.
         */
        readonly output?: number | undefined
      })
    | undefined
  /** The tokens of declarations in the description of the tool. Scripts search for the others. Default: 3,000. */
  readonly inline?: number | undefined
}

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

const makeTool = (options: Options<ReadonlyArray<Tool.Tool<unknown>>, ReadonlyArray<AnyAgent>>): Tool.Tool<unknown> => {
  const { inline = 3_000, limits = {}, review = false, store = "thread", tools = [] } = options
  const agents = (options.agents ?? []).map((agent): AnyAgent => Agent.around(agent, bindSlot))
  const own = tools.map((tool) => definitionOf(tool))
  const settings = {
    own,
    hidden: [toolName],
    agents,
    limits,
    review,
    store,
    canContinue: true,
    catalogueOf: makeCatalogue()
  }

  return Tool.make(toolName, {
    description: `Runs a program over tools: TypeScript, the body of an async function. Use it for several calls, for loops, and for results that you need only a part of. Your other tools are there by their names, too. A call that fails rejects with an Error of the name "ToolError". There is no fetch, no require, no process. You see what the program prints and returns, and nothing else:\n${describeWorld(own, agents, inline, store)}`,
    parameters: {
      script: Schema.String.annotate({ description: "The program" }),
      continues: Schema.optionalKey(
        Schema.String.annotate({ description: "The id of a failed script that this one corrects" })
      )
    },
    // Each inner call has the annotations of its own tool: gates, marks of foreign text and limits of sub-agents read them.
    annotations: { resumable: true, destructive: false, openWorld: false },
    reaches: new Set([...own.map((tool) => tool.name), ...agents.flatMap((agent) => [...Agent.toolNames(agent)])]),
    describe: ({ script }) => `Runs this program:\n${typeof script === "string" ? script : ""}`,
    execute: ({ continues, script }) => executeScript({ ...settings, source: script, args: null, continues })
  })
}

const refuseMake = makeMiddlewareCheck(name, shapes.codeModeMake)

type Needs<Tools extends ReadonlyArray<Tool.Tool<unknown>>, Agents extends ReadonlyArray<AnyAgent>> =
  | Scripts
  | ToolContext
  | Tool.Services<Tools[number]>
  | Agent.Services<Agents[number]>

/**
 * Offers `run_script`. Each call of a script passes decoding, rules, approvals, budgets and events like a call of the
 * model, and has the script's call as its parent. A run that is resumed gives a script the stored results of the calls
 * that were done.
 */
export const make: {
  <
    const Tools extends ReadonlyArray<Tool.Tool<unknown>> = ReadonlyArray<Tool.Tool>,
    const Agents extends ReadonlyArray<AnyAgent> = ReadonlyArray<Agent.Agent<unknown, unknown, never>>
  >(
    options: Options<Tools, Agents> & {
      /** Has a person approve each script as a whole. */
      readonly review: true
    }
  ): Middleware.AskingMiddleware<never, Needs<Tools, Agents>>
  <
    const Tools extends ReadonlyArray<Tool.Tool<unknown>> = ReadonlyArray<Tool.Tool>,
    const Agents extends ReadonlyArray<AnyAgent> = ReadonlyArray<Agent.Agent<unknown, unknown, never>>
  >(
    options?: Options<Tools, Agents> & {
      /** Has a person approve each script as a whole. */
      readonly review?: false | undefined
    }
  ): Middleware.Middleware<never, Needs<Tools, Agents>>
} = <Tools extends ReadonlyArray<Tool.Tool<unknown>>, Agents extends ReadonlyArray<AnyAgent>>(
  given?: Options<Tools, Agents>
): Middleware.AskingMiddleware<never, Needs<Tools, Agents>> => {
  const options = given ?? {}
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const { inline, limits: { calls, memory, output } = {} } = options
  const hidden = [...(options.tools ?? []), ...((options.agents ?? []).length === 0 ? [] : [agentTool])]
  const own = new Set(hidden.map((tool) => tool.name))
  // The types of the options have the needs of their tools and agents.
  const tools = [makeTool(options), ...hidden] as ReadonlyArray<Tool.Tool<Needs<Tools, Agents>>>
  const parts: Middleware.Parts<never, Needs<Tools, Agents>> = {
    name,
    ...(options.review === true ? { asks: true } : {}),
    check: () => findLimitProblem(name, 1, { memory, calls, output }) ?? findLimitProblem(name, 0, { inline }),
    state: [Values.storeSlot, Continued.failedSlot],
    ...(options.store === "turn" ? { beforeAgent: Values.dropOfTurn } : {}),
    tools,
    wrapModelCall: (request, next) =>
      own.size === 0
        ? next(request)
        : next({
            ...request,
            tools: request.tools.map((tool) => (own.has(tool.name) ? { ...tool, hidden: true as const } : tool))
          })
  }
  // Only with `review` does it ask, and only then its type says so.
  return Middleware.make<never, Needs<Tools, Agents>>(parts as Middleware.AskingParts<never, Needs<Tools, Agents>>)
}
