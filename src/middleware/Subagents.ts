/**
 * Delegates parts of the work to sub-agents: one tool, `task`, runs one of several agents with a context of its own.
 *
 * Each is an `Agent` value with its own prompt, tools, model (`Agent.provide`), middleware, output schema and limits.
 * It sees only its task, works on the same backend, and returns only its answer. Calls of one turn run at once. The
 * model sees a failure as a tool result.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Subagents } from "effect-deepagents/middleware"
 *
 * const researcher = Agent.make({ name: "researcher", description: "Answers one question", prompt: "You search." })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You answer by sources.",
 *   middleware: [Subagents.make({ agents: [researcher] })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import { withoutOpenTurn } from "./internal/handoffs.ts"
import { countProblem } from "./internal/limits.ts"
import { twoOfOneName, withoutDescription } from "./internal/names.ts"
import * as shapes from "./internal/shapes.ts"

const name = "Subagents"

/** The name of the tool. */
export const toolName = "task"

/** The default limit of nesting: the first agent has depth 0. */
export const defaultMaxDepth = 3

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** A sub-agent that starts with its parent's conversation, for work that needs all of it. */
export interface Fork<A extends AnyAgent> {
  readonly fork: A
}

/** Makes a sub-agent start with its parent's conversation. */
export const fork = <A extends AnyAgent>(agent: A): Fork<A> => ({ fork: agent })

type Entry = AnyAgent | Fork<AnyAgent>

/** Services that sub-agents need. */
export type Services<T> = T extends Fork<infer A> ? Agent.Services<A> : Agent.Services<T>

const agentOf = (entry: Entry): AnyAgent => ("fork" in entry ? entry.fork : entry)

const describe = (agents: ReadonlyArray<AnyAgent>): string =>
  agents.map((agent) => `- ${agent.name}: ${agent.description}`).join("\n")

const parameters = Schema.Struct({
  description: Schema.String.annotate({
    description:
      "The task, in full: what to do, what is known, what to give back. Only the sub-agent's answer comes back."
  }),
  subagent_type: Schema.String.annotate({ description: "The name of the sub-agent: one of those listed." })
})

const makeTool = <R>(entries: ReadonlyArray<Entry>, maxDepth: number): Tool.Tool<R | ToolContext> => {
  const byName = new Map(entries.map((entry) => [agentOf(entry).name, entry]))
  const names = [...byName.keys()]
  const run = (type: string, task: string) =>
    Effect.gen(function* () {
      const entry = byName.get(type)
      if (entry === undefined) {
        return yield* Effect.fail(ToolError.make(`There is no sub-agent "${type}". There are: ${names.join(", ")}.`))
      }
      const { messages, run: parent } = yield* ToolContext
      if (parent.depth + 1 > maxDepth) {
        return yield* Effect.fail(
          ToolError.make(`Sub-agents can't be nested deeper than ${maxDepth}. Do this part of the work yourself.`)
        )
      }
      const options = "fork" in entry ? { history: withoutOpenTurn(yield* messages) } : {}
      return yield* Agent.toToolResult(yield* Agent.delegate(agentOf(entry), task, options))
    })
  return Tool.make(toolName, {
    description: `Has a sub-agent do a part of the work that is large or separable, in a context of its own, which keeps yours small. Do small things yourself. Call it several times in one turn for parts that don't need each other. There are:\n${describe(entries.map(agentOf))}`,
    parameters,
    annotations: { resumable: true, destructive: false, openWorld: false, delegates: true, aliases: ["Agent"] },
    reaches: new Set(entries.flatMap((entry) => [...Agent.toolNames(agentOf(entry))])),
    // `make` restores the agents' requirements, which their types had.
    execute: ({ description, subagent_type }) =>
      run(subagent_type, description) as Effect.Effect<string, unknown, R | ToolContext>
  })
}

const refuseMake = makeMiddlewareCheck(name, shapes.subagentsMake)

/**
 * Offers `task` for these agents. `maxDepth` (3) limits nesting: an agent at that depth must do the work itself.
 * Budgets, approvals and other inherited middleware apply in sub-agents too.
 */
export const make = <const Agents extends ReadonlyArray<Entry>>(options: {
  /** The agents that the tool `task` offers. */
  readonly agents: Agents
  /** The deepest nesting: an agent at that depth does the work itself. Default: 3. */
  readonly maxDepth?: number | undefined
}): Middleware.Middleware<never, Services<Agents[number]> | ToolContext> =>
  refuseMake(options) ??
  Middleware.make<never, Services<Agents[number]> | ToolContext>({
    name,
    check: () =>
      twoOfOneName("sub-agents", options.agents.map(agentOf)) ??
      withoutDescription(options.agents.map(agentOf)) ??
      countProblem(name, { maxDepth: options.maxDepth }),
    tools: options.agents.length === 0 ? [] : [makeTool(options.agents, options.maxDepth ?? defaultMaxDepth)]
  })
