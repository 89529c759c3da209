/** The workflow of the program: scripts over its agents. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as AgentFile from "../../../../agents/AgentFile.ts"
import * as NodeScripts from "../../../../code/NodeScripts.ts"
import type { Scripts } from "../../../../code/Scripts.ts"
import * as Workflow from "../../../../code/Workflow.ts"
import * as Agent from "../../../../core/Agent.ts"
import type { Settings } from "../../config/settings.ts"
import { type Failure, orFail } from "../../failure.ts"

/** The name of the agent that a workflow is, in requests, calls and events. */
export const agentName = "workflow"

/** The agent of a script that names none. */
const worker = "worker"

/** A workflow over the agents of the program, and the input for a script. */
export interface ProgramWorkflow<E, R> {
  readonly agent: Effect.Effect<Agent.Agent<unknown, E | Workflow.WorkflowStopped, Exclude<R, Scripts>>, Failure>
  readonly input: (input: Workflow.Input) => Agent.Input
}

const { description: language, input } = Workflow.make({ name: agentName, agents: [] })

/** The language of scripts, for a model. */
export { language }

/** Makes the workflow of an agent. Sub-agents that can't be compiled are left out: their files are told elsewhere. */
export const makeWorkflow = <O, E, R>(
  { budget, scripts }: Settings,
  { agents, deep }: { readonly agents: ReadonlyArray<AgentFile.AgentFile>; readonly deep: AgentFile.AgentFile },
  compile: (file: AgentFile.AgentFile) => Effect.Effect<Agent.Agent<O, E, R>, AgentFile.InvalidAgentFile>
): ProgramWorkflow<E, R> => ({
  agent: Effect.gen(function* () {
    const description = "Does any part of the work: reads and changes files, runs commands."
    const general = { ...deep, name: worker, description, subagents: [], generalPurpose: false }
    const names = new Set(deep.subagents)
    const subagents = agents.filter(({ name }) => names.has(name))
    const others = yield* Effect.forEach(subagents, (one) => Effect.option(compile(one)))
    const workflow = Workflow.make({
      name: agentName,
      agents: [yield* orFail("usage")(compile(general)), ...Arr.getSomes(others)],
      limits: budget === undefined ? {} : { cost: budget.value },
      review: scripts?.value === "review"
    })
    return Agent.provide(workflow, NodeScripts.layer())
  }),
  input
})
