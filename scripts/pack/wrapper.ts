/** A library that gives its own way to make a deep agent: generic, and with a default of its own. */
import type { Effect } from "effect"
import { Agent, type Middleware, type Tool } from "effect-deepagents"
import { DeepAgent } from "effect-deepagents/deep"
import { Budget } from "effect-deepagents/middleware"

export const makeAnalyst = <
  const Tools extends ReadonlyArray<Tool.Tool<unknown>>,
  const Stack extends ReadonlyArray<Middleware.Middleware<unknown, unknown>>
>(options: {
  readonly tools: Tools
  readonly middleware: Stack
}) =>
  DeepAgent.make({
    name: "analyst",
    prompt: "You find out.",
    tools: options.tools,
    middleware: [...options.middleware, Budget.make({ rounds: 100, onExhausted: "finalAnswer" })]
  })

export const makeWith = <O extends DeepAgent.SubagentOptions>(options: O) => ({ ...options, maxRounds: 10 })

export const runner = <O, E, R>(agent: Agent.Agent<O, E, R>) => ({
  run: (input: string) => Agent.run(agent, input),
  stream: (input: string) => Agent.stream(agent, input),
  start: (input: string) => Agent.start(agent, input)
})

export const analyst = makeAnalyst({ tools: [], middleware: [] })
export type Analysis = Effect.Success<ReturnType<typeof run>>
export const run = (question: string) => Agent.run(analyst, question)
