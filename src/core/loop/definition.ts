/** Compiles an agent: works out once all data that stays the same from run to run. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import { check } from "../../support/options/check.ts"
import { didYouMean } from "../../support/text/names.ts"
import type { AnySlot } from "../AgentState.ts"
import { always } from "../Approval.ts"
import type { JsonObject } from "../Json.ts"
import { make, type Middleware } from "../Middleware.ts"
import { decodeText, type Output } from "../schema/answer.ts"
import * as shapes from "../schema/shapes.ts"
import type { StandardSchema } from "../schema/standard.ts"
import type { TextCodec } from "../schema/textCodec.ts"
import type { StopWhen } from "../StopWhen.ts"
import { finalAnswer, type Tool } from "../Tool.ts"
import { make as makeToolset, needsApproval, problemOf, type Toolset } from "./toolset.ts"

/**
 * The parts of an agent. Inside the loop, its failures and needs are `unknown`: `Agent.make` checked the types, and
 * `Agent.run` restores them.
 */
export interface Definition {
  readonly name: string
  readonly description: string
  readonly prompt: string | Effect.Effect<string, unknown, unknown>
  readonly tools: ReadonlyArray<Tool<unknown>>
  readonly middleware: ReadonlyArray<Middleware<unknown, unknown>>
  /** The middleware that a run which outlives its call takes along from its parents. */
  readonly inherited: ReadonlyArray<Middleware<unknown, unknown>>
  readonly output: Output | undefined
  readonly maxRounds: number
  readonly toolConcurrency: number
  readonly stopWhen: ReadonlyArray<StopWhen<unknown, unknown>>
  readonly parameters: JsonObject
  readonly layers: ReadonlyArray<Layer.Layer<unknown, unknown, unknown>>
  readonly program?: Program | undefined
  /** Set where somebody answers questions while the run waits. */
  readonly isAttended?: boolean | undefined
  /** The problem of the agent's options. */
  readonly problem?: string | undefined
}

/** The effect that a program runs instead of rounds, and the codecs of its input and output. */
export interface Program {
  readonly reaches: ReadonlySet<string>
  /** True if its records outlive its answers. */
  readonly keeps: boolean
  readonly schema: Schema.ConstraintCodec<unknown, unknown> | StandardSchema | undefined
  readonly input: TextCodec
  readonly output: TextCodec
  readonly run: (input: unknown) => Effect.Effect<unknown, unknown, unknown>
}

type Hook<Name extends keyof Middleware<unknown, unknown>> = NonNullable<Middleware<unknown, unknown>[Name]>

type DynamicTools = Extract<Hook<"tools">, (...args: never) => unknown>

export interface CompiledAgent {
  readonly definition: Definition
  readonly problem: string | undefined
  readonly toolset: Toolset
  /** Middleware whose tools come and go. */
  readonly dynamicTools: ReadonlyArray<DynamicTools>
  readonly slots: ReadonlyArray<AnySlot>
  readonly beforeAgent: ReadonlyArray<Hook<"beforeAgent">>
  readonly afterAgent: ReadonlyArray<Hook<"afterAgent">>
  readonly beforeModel: ReadonlyArray<Hook<"beforeModel">>
  readonly afterModel: ReadonlyArray<Hook<"afterModel">>
  /** True when a run may end to wait for a decision. */
  readonly suspends: boolean
  /** True if middleware counts the calls of a turn. The turn is then stored before they begin. */
  readonly counts: boolean
  readonly rewrites: ReadonlyArray<Hook<"rewriteArguments">>
  readonly sources: ReadonlyArray<Hook<"rulings">>
  readonly wrapModelCall: ReadonlyArray<Hook<"wrapModelCall">>
  readonly wrapToolCall: ReadonlyArray<Hook<"wrapToolCall">>
  readonly prompts: ReadonlyArray<Hook<"prompt">>
  readonly inherited: ReadonlyArray<Middleware<unknown, unknown>>
}

const checkParts = check(shapes.middlewareMake)

/** Finds a middleware with an unknown hook, or with a part of a wrong kind. */
const findUnfit = (middleware: ReadonlyArray<Middleware<unknown, unknown>>): string | undefined => {
  for (const one of middleware) {
    const problem = checkParts(one)
    if (problem !== undefined) return `the middleware "${one.name}": ${problem}`
  }
  return undefined
}

const findUnfitTool = (definition: Definition, tools: ReadonlyArray<Tool<unknown>>): string | undefined => {
  const seen = new Set<string>()
  for (const tool of tools) {
    const problem = problemOf(tool)
    if (problem !== undefined) return problem
    if (seen.has(tool.name)) return `two tools are named "${tool.name}"; rename one of them`
    seen.add(tool.name)
  }
  return definition.output !== undefined && seen.has(finalAnswer)
    ? `an agent with an output schema can't have a tool named "${finalAnswer}"; rename it`
    : undefined
}

const findUnfitSlot = (slots: ReadonlyArray<AnySlot>): string | undefined => {
  const byName = new Map<string, AnySlot>()
  for (const slot of slots) {
    if (slot.name.startsWith("inside/")) {
      return `the state slot "${slot.name}" has a name that the library keeps for itself; rename it`
    }
    const other = byName.get(slot.name)
    if (other !== undefined && other.origin !== slot.origin) {
      return `two state slots are named "${slot.name}"; rename one of them`
    }
    byName.set(slot.name, slot)
  }
  return undefined
}

const findProblem = (
  definition: Definition,
  tools: ReadonlyArray<Tool<unknown>>,
  slots: ReadonlyArray<AnySlot>
): string | undefined => {
  if (definition.problem !== undefined) return definition.problem
  const unfit = findUnfit(definition.middleware) ?? findUnfitTool(definition, tools)
  if (unfit !== undefined) return unfit
  const { output, program } = definition
  const unreadable = output?.problem ?? program?.output.problem
  if (unreadable !== undefined) return `the output: ${unreadable}`
  if (program?.input.problem !== undefined) return `the input: ${program.input.problem}`
  const unfitSlot = findUnfitSlot(slots)
  if (unfitSlot !== undefined) return unfitSlot
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
): ReadonlyArray<Hook<Name>> => {
  const all = middleware.flatMap((one) => {
    const hook = one[name]
    return hook === undefined ? [] : [hook]
  })
  return freeze(all)
}

/** Most agents have nothing of most kinds, so they share it. */
const none: ReadonlyArray<never> = []

/** An array that lives as long as the agent: a grown array has room for 16 more items. */
const freeze = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> => (values.length === 0 ? none : values.slice())

/** Finds the problem that a middleware of the agent has with its tools. */
const refusalOf = ({ middleware, program }: Definition, tools: ReadonlyArray<Tool<unknown>>): string | undefined => {
  const checks = hooks(middleware, "check")
  if (checks.length === 0) return undefined
  const reach = reachIn(tools, program)
  const names = new Set(tools.map((tool) => tool.name))
  for (const check of checks) {
    const problem = check(names, reach, tools.some(needsApproval))
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Reads the answer of an agent from the text that it was given as. */
export const readAnswer = ({ output, program }: Definition, text: string): Effect.Effect<unknown, string> =>
  program !== undefined
    ? program.output.read(text)
    : output === undefined
      ? Effect.succeed(text)
      : decodeText(output, text)

/** Removes middleware by name. If that is impossible, adds middleware whose problem keeps the agent from running. */
export const withoutNamed = (
  middleware: ReadonlyArray<Middleware<unknown, unknown>>,
  names: ReadonlyArray<string>
): ReadonlyArray<Middleware<unknown, unknown>> => {
  for (const name of names) {
    const matches = middleware.filter((one) => one.name === name)
    const guards = matches.some(({ inherit, rulings }) => inherit === true || rulings !== undefined)
    const there = middleware.map((one) => one.name)
    const problem =
      matches.length === 0
        ? `the middleware "${name}" can't be turned off: the agent has ${there.join(", ")}.${didYouMean(name, there)}`
        : guards
          ? `the middleware "${name}" guards the agent and its sub-agents, so it can't be turned off`
          : undefined
    if (problem !== undefined) return [...middleware, make({ name: "off", check: () => problem })]
  }
  return middleware.filter(({ name }) => !names.includes(name))
}

/** The same agent without suspension: its questions go to `Approvals`, or are refused. */
export const withoutSuspending = (compiled: CompiledAgent): CompiledAgent => ({ ...compiled, suspends: false })

type AnyMiddleware = Middleware<unknown, unknown>

/** All middleware of an agent, outermost first: inherited middleware, then its own. */
const allOf = ({ inherited, middleware }: Definition, from: ReadonlyArray<AnyMiddleware>) => [
  ...[...new Set([...from, ...inherited])].filter((one) => !middleware.includes(one)),
  ...middleware
]

const fixedTools = ({ tools }: Definition, offers: ReadonlyArray<Hook<"tools">>): ReadonlyArray<Tool<unknown>> => [
  ...tools,
  ...offers.flatMap((offer) => (typeof offer === "function" ? [] : offer))
]

const reachIn = (tools: ReadonlyArray<Tool<unknown>>, program: Program | undefined): ReadonlySet<string> =>
  new Set([...tools.flatMap((tool) => [tool.name, ...(tool.reaches ?? [])]), ...(program?.reaches ?? [])])

/** The names of the tools of an agent and its sub-agents, before it is compiled. */
export const reachOf = (definition: Definition): ReadonlySet<string> =>
  reachIn(fixedTools(definition, hooks(allOf(definition, []), "tools")), definition.program)

/** Compiles a definition. `inherited` is the middleware of its parents: outermost. */
export const compile = (definition: Definition, inherited: ReadonlyArray<AnyMiddleware> = []): CompiledAgent => {
  const middleware = allOf(definition, inherited)
  const offers = hooks(middleware, "tools")
  const tools = fixedTools(definition, offers)
  const asks = middleware.some((one) => one.asks === true)
  const slots = freeze([...hooks(middleware, "state").flat(), ...(asks ? [always] : [])])
  return {
    definition,
    problem: findProblem(definition, tools, slots) ?? refusalOf(definition, tools),
    toolset: makeToolset(tools),
    dynamicTools: freeze(offers.filter((offer) => typeof offer === "function")),
    slots,
    beforeAgent: hooks(middleware, "beforeAgent"),
    afterAgent: freeze(hooks(middleware, "afterAgent").toReversed()),
    beforeModel: hooks(middleware, "beforeModel"),
    afterModel: freeze(hooks(middleware, "afterModel").toReversed()),
    suspends: definition.isAttended !== true && asks,
    counts: middleware.some(({ counts }) => counts === true),
    rewrites: hooks(middleware, "rewriteArguments"),
    sources: hooks(middleware, "rulings"),
    wrapModelCall: hooks(middleware, "wrapModelCall"),
    wrapToolCall: hooks(middleware, "wrapToolCall"),
    prompts: hooks(middleware, "prompt"),
    inherited: freeze(middleware.filter((one) => one.inherit === true))
  }
}
