import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { normaliseName } from "../../support/names.ts"
import type { AnySlot } from "../AgentState.ts"
import type { ToolDefinition } from "../ChatModel.ts"
import type { Json, JsonObject } from "../Json.ts"
import type { Middleware } from "../Middleware.ts"
import type { StopWhen } from "../StopWhen.ts"
import { finalAnswer, type Tool } from "../Tool.ts"

/**
 * Inside the loop, what an agent may fail with and what it needs is `unknown`: the types were checked when the agent was
 * made, and are put back where its run is handed out.
 */
export interface Output {
  readonly jsonSchema: JsonObject
  readonly problem: string | undefined
  readonly decode: (json: Json) => Effect.Effect<unknown, string>
}

/** What an agent is made of. */
export interface Definition {
  readonly name: string
  readonly description: string
  readonly prompt: string | Effect.Effect<string, unknown, unknown>
  readonly tools: ReadonlyArray<Tool<unknown>>
  readonly middleware: ReadonlyArray<Middleware<unknown, unknown>>
  /** What a run that outlives the call which began it takes along from its parents. */
  readonly inherited: ReadonlyArray<Middleware<unknown, unknown>>
  readonly output: Output | undefined
  readonly maxRounds: number
  readonly toolConcurrency: number
  readonly stopWhen: ReadonlyArray<StopWhen<unknown, unknown>>
  readonly parameters: JsonObject
  readonly layers: ReadonlyArray<Layer.Layer<unknown, unknown, unknown>>
}

type Hook<Name extends keyof Middleware<unknown, unknown>> = NonNullable<Middleware<unknown, unknown>[Name]>

/** A definition as the loop wants it: everything that does not change from run to run, worked out once. */
export interface Compiled {
  readonly definition: Definition
  readonly problem: string | undefined
  readonly tools: ReadonlyMap<string, Tool<unknown>>
  /** The names of its tools, and of those of its sub-agents. */
  readonly reach: ReadonlySet<string>
  readonly folded: ReadonlyMap<string, string | undefined>
  readonly toolDefinitions: ReadonlyArray<ToolDefinition>
  readonly slots: ReadonlyArray<AnySlot>
  readonly beforeAgent: ReadonlyArray<Hook<"beforeAgent">>
  readonly afterAgent: ReadonlyArray<Hook<"afterAgent">>
  readonly beforeModel: ReadonlyArray<Hook<"beforeModel">>
  readonly afterModel: ReadonlyArray<Hook<"afterModel">>
  /** Whether a run may end for want of a decision. */
  readonly suspends: boolean
  /** Whether a tool may need a decision of its own accord. */
  readonly asks: boolean
  readonly gates: ReadonlyArray<{ readonly gate: Hook<"gateToolCalls">; readonly suspends: boolean }>
  readonly wrapModelCall: ReadonlyArray<Hook<"wrapModelCall">>
  readonly wrapToolCall: ReadonlyArray<Hook<"wrapToolCall">>
  readonly prompts: ReadonlyArray<Hook<"prompt">>
  readonly inherited: ReadonlyArray<Middleware<unknown, unknown>>
}

const define = (tool: Tool<unknown>): ToolDefinition => ({
  name: tool.name,
  description: tool.description,
  parameters: tool.parameters,
  annotations: tool.annotations
})

const nameRule = /^[A-Za-z0-9_-]{1,64}$/

const findProblem = (
  definition: Definition,
  tools: ReadonlyArray<Tool<unknown>>,
  slots: ReadonlyArray<AnySlot>
): string | undefined => {
  const seen = new Set<string>()
  for (const tool of tools) {
    if (!nameRule.test(tool.name)) {
      return `the tool name ${JSON.stringify(tool.name)} is not one that models accept (1 to 64 of A-Z a-z 0-9 _ -)`
    }
    if (tool.problem !== undefined) return `the parameters of the tool "${tool.name}": ${tool.problem}`
    if (seen.has(tool.name)) return `two tools are named "${tool.name}"; rename one of them`
    seen.add(tool.name)
    if (tool.outputLimit !== undefined && !(tool.outputLimit >= 1)) {
      return `the outputLimit of the tool "${tool.name}" must be a number of at least 1, not ${tool.outputLimit}`
    }
  }
  if (definition.output !== undefined && seen.has(finalAnswer)) {
    return `an agent with an output schema can't have a tool named "${finalAnswer}"; rename it`
  }
  if (definition.output?.problem !== undefined) return `the output: ${definition.output.problem}`
  const byName = new Map<string, AnySlot>()
  for (const slot of slots) {
    const other = byName.get(slot.name)
    if (other !== undefined && other.origin !== slot.origin)
      return `two state slots are named "${slot.name}"; rename one of them`
    byName.set(slot.name, slot)
  }
  if (!Number.isInteger(definition.maxRounds) || definition.maxRounds < 1) {
    return `maxRounds must be a whole number of at least 1, not ${definition.maxRounds}`
  }
  if (!Number.isInteger(definition.toolConcurrency) || definition.toolConcurrency < 1) {
    return `toolConcurrency must be a whole number of at least 1, not ${definition.toolConcurrency}`
  }
  return undefined
}

const hooks = <Name extends keyof Middleware<unknown, unknown>>(
  middleware: ReadonlyArray<Middleware<unknown, unknown>>,
  name: Name
): ReadonlyArray<Hook<Name>> =>
  middleware.flatMap((one) => {
    const hook = one[name]
    return hook === undefined ? [] : [hook]
  })

const needsApproval = (tool: Tool<unknown>): boolean => tool.needsApproval === true

/** What a middleware of the agent's own has against the agent. */
const refused = (
  middleware: ReadonlyArray<Middleware<unknown, unknown>>,
  tools: ReadonlyArray<Tool<unknown>>,
  reach: ReadonlySet<string>
): string | undefined => {
  const checks = hooks(middleware, "check")
  if (checks.length === 0) return undefined
  const names = new Set(tools.map((tool) => tool.name))
  for (const check of checks) {
    const problem = check(names, reach, tools.some(needsApproval))
    if (problem !== undefined) return problem
  }
  return undefined
}

const suspends = (one: Middleware<unknown, unknown>): boolean => "suspends" in one && one.suspends === true

/** Works a definition out. `inherited` is what comes down from the parents of a sub-agent: outermost. */
export const compile = (
  definition: Definition,
  inherited: ReadonlyArray<Middleware<unknown, unknown>> = []
): Compiled => {
  const from = [...new Set([...inherited, ...definition.inherited])]
  const middleware = [...from.filter((one) => !definition.middleware.includes(one)), ...definition.middleware]
  const tools = [...definition.tools, ...hooks(middleware, "tools").flat()]
  const slots = hooks(middleware, "state").flat()
  const reach = new Set(tools.flatMap((tool) => [tool.name, ...(tool.reaches ?? [])]))
  const folded = new Map<string, string | undefined>()
  for (const { name } of tools) {
    const key = normaliseName(name)
    folded.set(key, folded.has(key) ? undefined : name)
  }
  return {
    definition,
    problem: findProblem(definition, tools, slots) ?? refused(definition.middleware, tools, reach),
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    reach,
    folded,
    toolDefinitions: tools.map(define),
    slots,
    beforeAgent: hooks(middleware, "beforeAgent"),
    afterAgent: hooks(middleware, "afterAgent").toReversed(),
    beforeModel: hooks(middleware, "beforeModel"),
    afterModel: hooks(middleware, "afterModel").toReversed(),
    suspends: middleware.some(suspends),
    asks: tools.some(needsApproval),
    gates: middleware.flatMap((one) =>
      one.gateToolCalls === undefined ? [] : [{ gate: one.gateToolCalls, suspends: suspends(one) }]
    ),
    wrapModelCall: hooks(middleware, "wrapModelCall"),
    wrapToolCall: hooks(middleware, "wrapToolCall"),
    prompts: hooks(middleware, "prompt"),
    inherited: middleware.filter((one) => one.inherit === true)
  }
}
