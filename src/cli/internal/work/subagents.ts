/** Agents of files as sub-agents of the default agent. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as AgentFile from "../../../agents/AgentFile.ts"
import { normaliseName } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Agents } from "../config/agents.ts"
import type { Places } from "../config/places.ts"
import { keyed } from "../config/providers.ts"

/** The most agents of files for the default agent, and characters of a description. */
const limits = { agents: 50, description: 600 } as const

type One = Agents["agents"][number]

/** Removes models whose provider has no key here: the agent then has the model of the chat. */
const withoutMissing = Effect.fnUntraced(function* (places: Places, agents: ReadonlyArray<One>) {
  if (agents.every(({ model, origin }) => origin === "program" || model === undefined)) return { agents, problems: [] }
  const missing = new Set(
    (yield* keyed(places)).flatMap(({ key, name }) => (key === undefined ? [normaliseName(name)] : []))
  )
  const isMissing = ({ model, origin }: One): boolean =>
    origin !== "program" && model !== undefined && missing.has(normaliseName(model.split(":")[0] ?? ""))
  return {
    agents: agents.map((agent) => {
      if (!isMissing(agent)) return agent
      const { model: _model, ...rest } = agent
      return rest
    }),
    problems: agents
      .filter(isMissing)
      .map(({ model, path }) => `${path}: there is no key for ${model ?? ""}; it has the model of the chat`)
  }
})

/**
 * Gives the default agent the agents of files as sub-agents. An agent that can't be compiled is left out, and its problem is
 * reported.
 */
export const withFileAgents = Effect.fnUntraced(function* <A>(
  places: Places,
  deep: One,
  all: ReadonlyArray<One>,
  compile: (
    agent: AgentFile.AgentFile,
    agents: ReadonlyArray<AgentFile.AgentFile>
  ) => Effect.Effect<A, AgentFile.InvalidAgentFile>
) {
  const { agents: known, problems: missing } = yield* withoutMissing(places, all)
  const agents = known.map((agent) =>
    agent.origin === "program" ? agent : { ...agent, description: cut(oneLine(agent.description), limits.description) }
  )
  // A sub-agent can't call the agent that it works for.
  const others = agents.filter(({ name }) => name !== deep.name)
  const candidates = others.filter(({ origin }) => origin !== "program")
  const results = yield* Effect.forEach(candidates.slice(0, limits.agents), (agent) =>
    Effect.result(Effect.as(compile(agent, others), agent.name))
  )
  const excess = candidates.length - limits.agents
  return {
    deep: {
      ...deep,
      subagents: [
        ...new Set([
          ...(deep.subagents ?? []),
          ...results.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
        ])
      ]
    },
    agents: [...agents.filter(({ name }) => name === deep.name), ...others],
    problems: [
      ...missing,
      ...results.flatMap((one) => (Result.isFailure(one) ? [`${one.failure.message} (it is left out)`] : [])),
      ...(excess > 0 ? [`${excess} more agent files are left out: there are at most ${limits.agents} sub-agents`] : [])
    ]
  }
})
