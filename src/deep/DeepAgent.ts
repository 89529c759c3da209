/**
 * An agent for long work: it plans, works on files, delegates to sub-agents, and keeps its conversation within the
 * model's window. One function stacks this library's middleware in a fixed order.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { MemoryBackend } from "effect-deepagents/backends"
 * import { DeepAgent } from "effect-deepagents/deep"
 *
 * const researcher = DeepAgent.make({
 *   name: "researcher",
 *   prompt: "You answer questions by reading the documents, and name your sources."
 * })
 *
 * const answer = Agent.run(researcher, "What changed in version 4?").pipe(Effect.provide(MemoryBackend.layer()))
 * ```
 *
 * From the outside in: the model's profile (`HarnessProfile`), todos, skills, large results in files, sub-agents (in
 * the background too), summarization, a grader, your own middleware, cache marks, memory, facts, approvals, retries and time-outs. Your
 * middleware with a part's name replaces the part (`parts`).
 */
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as FileTools from "../backends/FileTools.ts"
import type * as Agent from "../core/Agent.ts"
import type { Backend } from "../core/Backend.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import type { StandardSchema } from "../core/schema/standard.ts"
import type * as StopWhen from "../core/StopWhen.ts"
import type * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as BackgroundSubagents from "../middleware/BackgroundSubagents.ts"
import type { BackgroundTasks } from "../middleware/BackgroundTasks.ts"
import type * as Filesystem from "../middleware/Filesystem.ts"
import * as HumanInTheLoop from "../middleware/HumanInTheLoop.ts"
import * as Rubric from "../middleware/Rubric.ts"
import * as Subagents from "../middleware/Subagents.ts"
import type * as Summarization from "../middleware/Summarization.ts"
import type { MemoryStore } from "../stores/MemoryStore.ts"
import { check } from "../support/options/check.ts"
import * as Facts from "./Facts.ts"
import { assemble, invalid, layers, skillsOf } from "./internal/assemble.ts"
import type { Options, SubagentOptions, SummaryOptions } from "./internal/options.ts"
import * as shapes from "./internal/shapes.ts"
import { type AnyMiddleware, stack } from "./internal/stack.ts"

export type { Options, SubagentOptions, SummaryOptions }

/** The name of the general-purpose sub-agent. */
export const generalPurpose = "general-purpose"

/**
 * The names of the stack's parts, from the outside in; your own middleware precedes `PromptCaching`. Your middleware
 * with a part's name replaces it: `Middleware.make({ name: "Memory", … })`, or the same module with other options
 * (`ModelRetry.make({ schedule })`). A name that nearly equals a part's fails the runs with `InvalidAgent`.
 */
export const parts = [
  "Harness",
  "Todos",
  "Skills",
  "Filesystem",
  "Subagents",
  "BackgroundSubagents",
  "Summarization",
  "Rubric",
  "PromptCaching",
  "Memory",
  "Facts",
  "HumanInTheLoop",
  "ModelRetry",
  "ModelTimeout"
] as const

type At<O, Key> = Key extends keyof O ? O[Key] : undefined
type Each<List> = List extends ReadonlyArray<infer A> ? A : never
type Answer<S> = S extends Schema.ConstraintCodec<infer A, unknown> ? A : S extends StandardSchema<infer A> ? A : string
type Background<List> = List extends ReadonlyArray<infer A> ? BackgroundSubagents.Services<A> | BackgroundTasks : never
type PromptError<P> = P extends Effect.Effect<string, infer E, infer _R> ? E : never
type PromptServices<P> = P extends Effect.Effect<string, infer _E, infer R> ? R : never

/** Shows a type's result instead of its derivation from the options. */
type Flatten<T> = [T] extends [infer U] ? U : never

/** `undefined` for an agent that may be suspended. */
type Suspension<O> =
  | Middleware.Suspension<Each<At<O, "middleware">>>
  | (At<O, "approvals"> extends undefined ? never : undefined)

/** The answer of a deep agent with these options: `undefined` too, if it may be suspended. */
type Output<O> = Flatten<Answer<At<O, "output">> | Suspension<O>>

/** Failures of a deep agent with these options. */
type Error<O> = Flatten<
  | ModelError
  | Middleware.Error<Each<At<O, "middleware">>>
  | StopWhen.Error<Each<At<O, "stopWhen">>>
  | PromptError<At<O, "prompt">>
>

/** Services that a deep agent with these options needs. */
type Services<O> = Flatten<
  | ChatModel
  | Backend
  | Exclude<
      | Tool.ServicesIn<Each<At<O, "tools">>, Suspension<O>>
      | Middleware.Services<Each<At<O, "middleware">>>
      | StopWhen.Services<Each<At<O, "stopWhen">>>
      | PromptServices<At<O, "prompt">>
      | Summarization.Services<At<O, "summarization">>
      | Subagents.Services<Each<At<O, "subagents">>>
      | Background<At<O, "backgroundSubagents">>,
      ToolContext
    >
  | (At<O, "execute"> extends false | undefined ? never : Sandbox)
  | (At<O, "facts"> extends undefined ? never : MemoryStore)
>

/** Options with nested options, by name. */
export interface NestedFields {
  readonly approvals: HumanInTheLoop.Options
  readonly execute: FileTools.ExecuteOptions
  readonly facts: Facts.Options
  readonly generalPurpose: Options["generalPurpose"]
  readonly largeResults: Filesystem.Options
  readonly summarization: SummaryOptions
}

type Rules<T> = T extends { readonly tools: infer Tools } ? Tools : never

/** Rejects a misspelt option at any depth. */
type Only<O, Known> = Agent.Only<O, Known> & {
  readonly [Key in keyof O & keyof NestedFields]?:
    | Extract<O[Key], boolean | undefined>
    | (Agent.Only<O[Key], NestedFields[Key], `${Key}.`> & {
        readonly tools?:
          | {
              readonly [Name in keyof Rules<O[Key]>]?:
                | Extract<Rules<O[Key]>[Name], boolean | undefined | ((...args: never) => unknown)>
                | Agent.Only<
                    Exclude<Rules<O[Key]>[Name], (...args: never) => unknown>,
                    HumanInTheLoop.Rule,
                    `${Key}.tools.${Name & string}.`
                  >
            }
          | undefined
      })
}

const checkMake = check(shapes.deepAgentMake)
const checkSubagent = check(shapes.deepAgentSubagent)

/**
 * Makes a sub-agent with the stack of a deep agent, for its `subagents`: file tools, todos, large results in files,
 * summaries. The model chooses it by its `description`. `Agent.provide` gives it its own model or files. Any other
 * `Agent` works too.
 */
export const subagent = <const O extends SubagentOptions & { readonly description: string }>(
  options: O & Only<O, SubagentOptions>
): Agent.Agent<Output<O>, Error<O>, Services<O>> => {
  const problem = checkSubagent(options)
  // The parts were assembled by name; the type sums up their types.
  return problem === undefined
    ? (assembleSubagent(options) as Agent.Agent<never, never, never>)
    : invalid(options, problem)
}

const assembleSubagent = (options: SubagentOptions) => {
  const { first, last, summary, tail } = layers(options)
  return assemble(options, stack([...first, ...summary], options.middleware ?? [], [...tail, ...last]))
}

const approvalsOf = (options: HumanInTheLoop.Options | undefined): ReadonlyArray<AnyMiddleware> =>
  options === undefined ? [] : [HumanInTheLoop.make(options)]

/** The quality that `reflect: true` asks for, as `Reflect.make` does. */
const usualQuality = 0.8

/** One grader for all three options: an answer is graded by one call. */
const rubricOf = ({ goal = [], reflect = false, verify }: Options): ReadonlyArray<AnyMiddleware> => {
  const threshold = reflect === false ? undefined : reflect === true ? usualQuality : reflect
  return verify === undefined && goal.length === 0 && threshold === undefined
    ? []
    : [Rubric.make({ criteria: verify, each: goal, threshold })]
}

const generalPrompt =
  "You do one task for another agent, in full, with the tools that you have. Nobody can answer questions. Your last message is all that the other agent sees: give it what it asked for, with the paths of the files that you wrote."

const generalDescription =
  "Does any task that needs several steps, with the same tools as you have. For searching and reading much to learn little, and for work beside other work."

/**
 * Makes the general-purpose sub-agent. Of its parent's middleware it has the retries and time-outs; it does not share
 * memory, output schema and stop conditions.
 */
const generalOf = (options: Options): ReadonlyArray<Agent.Agent<unknown, unknown, unknown>> => {
  const isTaken = (options.subagents ?? []).some((one) => ("fork" in one ? one.fork : one).name === generalPurpose)
  if (options.generalPurpose === false || isTaken) return []
  const { description = generalDescription, prompt = generalPrompt } = options.generalPurpose ?? {}
  const {
    agentId: _agentId,
    facts: _facts,
    memory: _memory,
    middleware = [],
    output: _output,
    stopWhen: _stops,
    ...rest
  } = options
  const patient = middleware.filter(({ name }) => name === "ModelRetry" || name === "ModelTimeout")
  const shared: SubagentOptions = { ...rest, middleware: patient }
  return [assembleSubagent({ ...shared, name: generalPurpose, description, prompt, skills: skillsOf(options) })]
}

/**
 * Makes a deep agent. Two tools with one name, and other invalid options, fail its runs with `AgentError`
 * (`InvalidAgent`), which names them. Its files are in the `Backend` of its context.
 */
export const make = <const O extends Options>(
  options: O & Only<O, Options>
): Agent.Agent<Output<O>, Error<O>, Services<O>> => {
  const problem = checkMake(options)
  if (problem !== undefined) return invalid(options, problem)
  const { first, last, summary, tail } = layers(options)
  const agents = [...generalOf(options), ...(options.subagents ?? [])]
  const { backgroundSubagents = [], maxDepth } = options
  const subagents = [
    ...(agents.length === 0 ? [] : [Subagents.make({ agents, maxDepth })]),
    ...(backgroundSubagents.length === 0 ? [] : [BackgroundSubagents.make({ agents: backgroundSubagents, maxDepth })])
  ]
  // The parts were assembled by name; the type sums up their types.
  return assemble(
    options,
    stack([...first, ...subagents, ...summary, ...rubricOf(options)], options.middleware ?? [], [
      ...tail,
      ...(options.facts === undefined ? [] : [Facts.make(options.facts)]),
      ...approvalsOf(options.approvals),
      ...last
    ])
  ) as Agent.Agent<never, never, never>
}
