/**
 * Agents: immutable values that are run, watched or steered.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 *
 * const greeter = Agent.make({ name: "greeter", prompt: "Greet whoever writes." })
 * const program = Effect.map(Agent.run(greeter, "Hello, I am Ada"), (result) => result.text)
 * ```
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as Pipeable from "effect/Pipeable"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type * as Types from "effect/Types"
import { once } from "../support/effect/once.ts"
import { check } from "../support/options/check.ts"
import { findLayerProblem } from "../support/options/layer.ts"
import { AgentError } from "./AgentError.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import type { AgentResult } from "./AgentResult.ts"
import type { Approvals } from "./Approval.ts"
import type { ChatModel, ToolDefinition } from "./ChatModel.ts"
import * as Checkpoint from "./Checkpoint.ts"
import type { JsonObject } from "./Json.ts"
import * as child from "./loop/child.ts"
import { type CompiledAgent, compile, type Definition, reachOf, withoutNamed } from "./loop/definition.ts"
import * as handle from "./loop/handle.ts"
import { human, type HumanMessage } from "./Message.ts"
import type * as Middleware from "./Middleware.ts"
import type { ModelError } from "./ModelError.ts"
import type { Handle, Input, Needs, Only, ResumeOptions, RunOptions } from "./runOptions.ts"
import { fromSchema as outputFromSchema } from "./schema/answer.ts"
import { nameIn, refuseTool } from "./schema/invalid.ts"
import * as shapes from "./schema/shapes.ts"
import type { StandardSchema } from "./schema/standard.ts"
import { fromSchema, text } from "./schema/textCodec.ts"
import type * as StopWhen from "./StopWhen.ts"
import * as Tool from "./Tool.ts"
import { ToolContext } from "./ToolContext.ts"
import type { ToolError } from "./ToolError.ts"

export type { Handle, Input, Needs, NoSuchOption, Only, ResumeOptions, RunOptions } from "./runOptions.ts"

const TypeId = "~effect-deepagents/Agent"

/** An agent that answers with `Output`, can fail with `E` and needs `R`. Make it with `Agent.make`. */
export interface Agent<out Output = string, out E = ModelError, out R = ChatModel> extends Pipeable.Pipeable {
  readonly [TypeId]: {
    readonly Output: Types.Covariant<Output>
    readonly E: Types.Covariant<E>
    readonly R: Types.Covariant<R>
    readonly definition: Definition
    readonly compiled: () => CompiledAgent
  }
  readonly name: string
  readonly description: string
}

/** The type of an agent's answer. */
export type Output<A> = A extends Agent<infer O, infer _E, infer _R> ? O : never

/** The failures of an agent's runs. */
export type Error<A> = A extends Agent<infer _O, infer E, infer _R> ? E | AgentError : never

/** The services that an agent needs. */
export type Services<A> = A extends Agent<infer _O, infer _E, infer R> ? R : never

const covariant = (value: never): never => value

const fromDefinition = <O, E, R>(definition: Definition): Agent<O, E, R> => ({
  // A sub-agent of an agent that is made for one request may never run.
  [TypeId]: { Output: covariant, E: covariant, R: covariant, definition, compiled: once(() => compile(definition)) },
  name: definition.name,
  description: definition.description,
  pipe: Pipeable.Prototype.pipe
})

/** The parts of an agent that asks no model. */
const withoutLoop = {
  prompt: "",
  inherited: [],
  output: undefined,
  maxRounds: 1,
  toolConcurrency: 1,
  stopWhen: [],
  parameters: {},
  layers: []
} as const

/** An agent whose options are wrong. */
const invalid = (options: unknown, problem: string): Agent<never, never, never> =>
  fromDefinition({
    name: nameIn(options),
    description: "",
    tools: [],
    middleware: [],
    ...withoutLoop,
    problem
  })

const checkMake = check(shapes.agentMake)
const checkProgram = check(shapes.agentProgram)
const checkAsTool = check(shapes.agentAsTool)
const checkResume = check(shapes.agentResume)

const definitionOf = (agent: Agent<unknown, unknown, unknown>): Definition => agent[TypeId].definition

/** The names of the tools of an agent and of its sub-agents. */
export const toolNames = (agent: Agent<unknown, unknown, unknown>): ReadonlySet<string> => reachOf(definitionOf(agent))

/** Tells whether an agent is a program whose records outlive its inputs (`keeps` of `Agent.program`). */
export const keepsRecords = (agent: Agent<unknown, unknown, unknown>): boolean =>
  definitionOf(agent).program?.keeps === true

/**
 * An agent before it runs: its fixed tools, its limits, and the `problem` that would fail its runs with `InvalidAgent`.
 */
export interface Description {
  readonly name: string
  readonly description: string
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly maxRounds: number
  readonly toolConcurrency: number
  /** True for an agent whose runs may end to wait for a decision. */
  readonly suspends: boolean
  readonly problem: string | undefined
}

/** Describes an agent, for checks and lists: nothing is run. */
export const describe = (agent: Agent<unknown, unknown, unknown>): Description => {
  const { definition, problem, suspends, toolset } = agent[TypeId].compiled()
  const { description, maxRounds, name, toolConcurrency } = definition
  return { name, description, tools: toolset.definitions, maxRounds, toolConcurrency, suspends, problem }
}

/** Makes an agent. Wrong options fail its runs with `InvalidAgent`, which names them. */
export const make = <
  const Tools extends ReadonlyArray<Tool.Tool<unknown>> = ReadonlyArray<Tool.Tool>,
  const Stack extends ReadonlyArray<Middleware.Middleware<unknown, unknown>> = ReadonlyArray<Middleware.Middleware>,
  const Stops extends ReadonlyArray<StopWhen.StopWhen<unknown, unknown>> = ReadonlyArray<StopWhen.StopWhen>,
  Output = string,
  PromptE = never,
  PromptR = never
>(options: {
  /** The name of the agent, in events, errors and traces. */
  readonly name: string
  /** Tells other agents what the agent can do. Default: empty. */
  readonly description?: string | undefined
  /** The system prompt, or an effect that makes it once a run. */
  readonly prompt: string | Effect.Effect<string, PromptE, PromptR>
  /** The tools that the model may call. Default: none. */
  readonly tools?: Tools | undefined
  /** The middleware around models and tools, outermost first. Default: none. */
  readonly middleware?: Stack | undefined
  /**
   * The schema of the answer. The model answers by its JSON-schema mode, or else by a `final_answer` tool. An answer
   * that does not decode goes back to the model at most twice. Default: text.
   */
  readonly output?: Schema.ConstraintCodec<Output, unknown> | StandardSchema<Output> | undefined
  /** The most rounds of a run. After them the model answers once more without tools. Default: 50. */
  readonly maxRounds?: number | undefined
  /** The most tools that run at once. Default: 8. */
  readonly toolConcurrency?: number | undefined
  /** Conditions that end the run after a round of tools. Default: none. */
  readonly stopWhen?: Stops | undefined
  /** Parameters that each request sends to the provider. Default: none. */
  readonly parameters?: JsonObject | undefined
  // `NoInfer`: a place that accepts any agent (`Agent.asTool(Agent.make(…))`) must not decide the needs of this one.
}): Agent<
  NoInfer<Output> | Middleware.Suspension<Stack[number]>,
  ModelError | Middleware.Error<Stack[number]> | StopWhen.Error<Stops[number]> | NoInfer<PromptE>,
  | ChatModel
  | Exclude<
      | Tool.ServicesIn<Tools[number], Middleware.Suspension<Stack[number]>>
      | Middleware.Services<Stack[number]>
      | StopWhen.Services<Stops[number]>
      | NoInfer<PromptR>,
      ToolContext
    >
> => {
  const problem = checkMake(options)
  if (problem !== undefined) return invalid(options, problem)
  return fromDefinition({
    name: options.name,
    description: options.description ?? "",
    prompt: options.prompt,
    tools: options.tools ?? [],
    middleware: options.middleware ?? [],
    inherited: [],
    output: options.output === undefined ? undefined : outputFromSchema(options.output),
    maxRounds: options.maxRounds ?? 50,
    toolConcurrency: options.toolConcurrency ?? 8,
    stopWhen: options.stopWhen ?? [],
    parameters: options.parameters ?? {},
    layers: []
  })
}

/**
 * An agent whose work is an effect in place of rounds with a model. `input` is the message that asks it for a value: its
 * JSON (for a schema of strings, and without a schema, the text itself).
 */
export interface Program<in In = string, out Output = string, out E = never, out R = never> extends Agent<
  Output,
  E,
  R
> {
  readonly input: (value: In) => HumanMessage
}

/**
 * Makes an agent whose work is an effect instead of rounds with a model. It runs, streams, resumes and serves as a tool
 * like any other agent.
 *
 * `run` gets the input, decoded with the schema `input` (without one, the text), and returns the output, which `output`
 * encodes. It has a `ToolContext` to call `tools`, ask questions, run steps (`Agent.step`) and run sub-agents
 * (`Agent.delegate`, `Agent.answer`).
 *
 * A program runs again after a suspension, a crash or an interruption. These calls then return their stored results;
 * all other code in `run` runs again, so effects belong into steps. A failure of `run` fails the run, and a resumed run
 * repeats the failed call. A new input to the thread discards the unfinished work. With `keeps`, the records outlive the
 * answer instead: a new input, such as another version of a script, finds the work of earlier inputs by its content,
 * finished or begun, and the answer drops what this input did not ask for.
 *
 * `reaches` names the tools of its sub-agents (`Agent.toolNames`), so that rules about these tools are not taken for
 * misspelt ones. A program has no model: hooks around model turns never run. Gates and `wrapToolCall` apply to its
 * calls, and `inherit` middleware to its sub-agents. Messages sent into the run stay `undelivered`.
 */
export const program = <
  In = string,
  Output = string,
  const Tools extends ReadonlyArray<Tool.Tool<unknown>> = ReadonlyArray<Tool.Tool>,
  const Stack extends ReadonlyArray<Middleware.Middleware<unknown, unknown>> = ReadonlyArray<Middleware.Middleware>,
  E = never,
  R = never
>(options: {
  /** The name of the program, in events, errors and traces. */
  readonly name: string
  /** Tells other agents what the program does. Default: empty. */
  readonly description?: string | undefined
  /** The schema of the input. Default: text. */
  readonly input?: Schema.ConstraintCodec<In, unknown> | StandardSchema<In> | undefined
  /** The schema of the output. Default: text. */
  readonly output?: Schema.ConstraintCodec<Output, unknown> | StandardSchema<Output> | undefined
  /** The tools that `run` may call by its `ToolContext`. Default: none. */
  readonly tools?: Tools | undefined
  /** The middleware around the calls of the program, outermost first. Default: none. */
  readonly middleware?: Stack | undefined
  /** The names of the tools of its sub-agents (`Agent.toolNames`), so that rules may name them. Default: none. */
  readonly reaches?: ReadonlySet<string> | undefined
  /** Whether later inputs to a thread find the records of earlier inputs. Default: `false`. */
  readonly keeps?: boolean | undefined
  /** The work: it gets the decoded input and returns the output. */
  readonly run: (input: NoInfer<In>) => Effect.Effect<NoInfer<Output>, E, R>
}): Program<
  In,
  Output | Middleware.Suspension<Stack[number]>,
  E | Middleware.Error<Stack[number]>,
  Exclude<
    R | Tool.ServicesIn<Tools[number], Middleware.Suspension<Stack[number]>> | Middleware.Services<Stack[number]>,
    ToolContext
  >
> => {
  const problem = checkProgram(options)
  if (problem !== undefined) return { ...invalid(options, problem), input: () => human("") }
  const { description = "", input, keeps = false, middleware = [], name, output, reaches, run, tools = [] } = options
  const inputCodec = input === undefined ? text : fromSchema(input, "the input")
  return {
    ...fromDefinition({
      name,
      description,
      tools,
      middleware,
      ...withoutLoop,
      program: {
        reaches: reaches ?? new Set(),
        keeps,
        schema: input,
        input: inputCodec,
        output: output === undefined ? text : fromSchema(output, "the output"),
        // `run` only gets values that the schema decoded.
        run: (value) => run(value as In)
      }
    }),
    input: (value) => human(inputCodec.say(value))
  }
}

/** Runs an agent to its end. */
export const run = <O, E, R, Options extends RunOptions = {}>(
  agent: Agent<O, E, R>,
  input: Input,
  options?: Options & Only<Options> & RunOptions
): Effect.Effect<AgentResult<O>, E | AgentError, R | Needs<Options>> =>
  // The definition was built from parts whose types `make` summed up in O, E and R.
  handle.run(agent[TypeId].compiled(), input, options ?? {}) as Effect.Effect<AgentResult<O>, E | AgentError, R>

const resumption = (compiled: CompiledAgent, options: ResumeOptions, problem: string | undefined) =>
  problem === undefined
    ? handle.run(
        compiled,
        Checkpoint.resume("checkpoint" in options ? options.checkpoint : undefined, {
          decisions: options.decisions,
          unknownOutcome: options.unknownOutcome
        }),
        "threadId" in options ? { threadId: options.threadId } : {}
      )
    : Effect.fail(new AgentError({ agent: compiled.definition.name, reason: { _tag: "InvalidInput", problem } }))

/**
 * Resumes a run that was suspended, interrupted or cut off: from a checkpoint (such as the earlier result), or with its
 * thread. `decisions` answer the `pending` requests. To watch or steer it, give `Checkpoint.resume` to `stream` or
 * `start`.
 */
export const resume = <O, E, R, Options extends ResumeOptions>(
  agent: Agent<O, E, R>,
  options: Options & Only<Options, ResumeOptions>
): Effect.Effect<AgentResult<O>, E | AgentError, R | Needs<Options>> =>
  resumption(agent[TypeId].compiled(), options ?? {}, checkResume(options)) as Effect.Effect<
    AgentResult<O>,
    E | AgentError,
    R
  >

/**
 * Runs an agent as the stream of its events. The stream ends after the terminal event, failing if the run failed. A
 * slow reader slows the run; leaving the stream interrupts it.
 */
export const stream = <O, E, R, Options extends RunOptions = {}>(
  agent: Agent<O, E, R>,
  input: Input,
  options?: Options & Only<Options> & RunOptions
): Stream.Stream<AgentEvent, E | AgentError, R | Needs<Options>> =>
  handle.stream(agent[TypeId].compiled(), input, options ?? {}) as Stream.Stream<AgentEvent, E | AgentError, R>

/** Starts an agent in the background of the current scope. */
export const start = <O, E, R, Options extends RunOptions = {}>(
  agent: Agent<O, E, R>,
  input: Input,
  options?: Options & Only<Options> & RunOptions
): Effect.Effect<Handle<O, E | AgentError>, never, R | Needs<Options> | Scope.Scope> =>
  handle.start(agent[TypeId].compiled(), input, options ?? {}) as Effect.Effect<
    Handle<O, E | AgentError>,
    never,
    R | Scope.Scope
  >

/**
 * Gives an agent some of its services. A sub-agent gets its own model this way. Each run builds the layer once and
 * releases it at its end.
 */
export const provide: {
  <A, E2, R2>(layer: Layer.Layer<A, E2, R2>): <O, E, R>(agent: Agent<O, E, R>) => Agent<O, E | E2, R2 | Exclude<R, A>>
  <O, E, R, A, E2, R2>(agent: Agent<O, E, R>, layer: Layer.Layer<A, E2, R2>): Agent<O, E | E2, R2 | Exclude<R, A>>
} = dual(2, (agent, layer) => {
  const definition = definitionOf(agent)
  const problem = findLayerProblem("Agent.provide", layer)
  return fromDefinition(
    problem === undefined
      ? { ...definition, layers: [...definition.layers, layer] }
      : { ...definition, problem: definition.problem ?? problem }
  )
})

/**
 * Says that somebody answers an agent's questions while it runs: it needs `Approvals`, is never suspended, and always has
 * an `output`.
 */
export const attended = <O, E, R>(agent: Agent<O, E, R>): Agent<Exclude<O, undefined>, E, R | Approvals> =>
  fromDefinition({ ...definitionOf(agent), isAttended: true })

/**
 * Puts middleware around an agent, outside of its own, without changing the agent: for programs that run agents of
 * others (with activities of a workflow, say).
 */
export const around: {
  <const M extends Middleware.Middleware<unknown, unknown>>(
    middleware: M
  ): <O, E, R>(agent: Agent<O, E, R>) => Around<O, E, R, M>
  <O, E, R, const M extends Middleware.Middleware<unknown, unknown>>(
    agent: Agent<O, E, R>,
    middleware: M
  ): Around<O, E, R, M>
} = dual(2, (agent: Agent<unknown, unknown, unknown>, middleware: Middleware.Middleware<unknown, unknown>) => {
  const definition = definitionOf(agent)
  return fromDefinition({ ...definition, middleware: [middleware, ...definition.middleware] })
})

/**
 * Removes middleware by name, without changing the agent. An unknown name fails its runs with `InvalidAgent`; so does
 * middleware that guards: it is inherited by sub-agents or decides on calls.
 */
export const without: {
  (names: ReadonlyArray<string>): <O, E, R>(agent: Agent<O, E, R>) => Agent<O, E, R>
  <O, E, R>(agent: Agent<O, E, R>, names: ReadonlyArray<string>): Agent<O, E, R>
} = dual(2, (agent: Agent<unknown, unknown, unknown>, names: ReadonlyArray<string>) => {
  const definition = definitionOf(agent)
  return fromDefinition({ ...definition, middleware: withoutNamed(definition.middleware, names) })
})

/** An agent with middleware put around it. */
export type Around<O, E, R, M> = Agent<
  O | Middleware.Suspension<M>,
  E | Middleware.Error<M>,
  R | Exclude<Middleware.Services<M>, ToolContext>
>

/**
 * Runs an agent as a sub-agent of the current tool call. Its events come inline with a longer path, its usage counts
 * for the parent, and the parent's inherited middleware applies. It starts with fresh messages and state, except for
 * shared slots. It can be suspended only if the parent can.
 *
 * When the tool runs again after a suspension or a crash, a finished sub-agent returns its stored answer, and an
 * unfinished one resumes. Its name and its input identify it. `session` names a conversation: later inputs in the same
 * call continue it, one after the other.
 */
export const delegate = <O, E, R>(
  agent: Agent<O, E, R>,
  input: Input,
  options?: child.ChildOptions
): Effect.Effect<AgentResult<O>, E | AgentError, R | ToolContext> =>
  child.delegate(agent[TypeId].compiled(), input, options ?? {}) as Effect.Effect<
    AgentResult<O>,
    E | AgentError,
    R | ToolContext
  >

/**
 * Runs a sub-agent like {@link delegate}, and returns its output. Without an output (it refused, said nothing, or waits
 * for a decision) it fails with `AgentError` and the reason `NoAnswer`.
 */
export const answer = <O, E, R>(
  agent: Agent<O, E, R>,
  input: Input,
  options?: child.ChildOptions
): Effect.Effect<Exclude<O, undefined>, E | AgentError, R | ToolContext> =>
  Effect.flatMap(delegate(agent, input, options), (result) => child.answerOf(agent[TypeId].compiled(), result))

/**
 * Runs work once inside a tool, and keeps its value. When the tool runs again, or a middleware retries it, the step
 * returns the stored value. Failures are not kept.
 *
 * Steps of one name are told apart by their order, so concurrent steps need different names (``step(`draft/${id}`,
 * …)``). A run with a thread stores the value before the step ends. A stored value that no longer decodes ends the run
 * with `AgentError`.
 */
export const step = <A, I, E, R>(
  name: string,
  work: Effect.Effect<A, E, R>,
  schema: Schema.Codec<A, I>
): Effect.Effect<A, E, R | ToolContext> => Effect.flatMap(ToolContext, (context) => context.step(name, work, schema))

/**
 * An agent as a run of its own that a tool call begins and that outlives the call: under the middleware that sub-agents
 * of this run inherit, with its own state, events and usage. Give it to `run` or `start`.
 */
export const detached = <O, E, R>(agent: Agent<O, E, R>): Effect.Effect<Agent<O, E, R>, never, ToolContext> =>
  Effect.map(child.inherited, (inherited) => {
    const definition = definitionOf(agent)
    const own = definition.middleware
    return fromDefinition({ ...definition, inherited: inherited.filter((one) => !own.includes(one)) })
  })

/**
 * Gives the end of a sub-agent to the model that asked for it: its text, or a failure if it stopped without an answer
 * for want of a decision.
 */
export const toToolResult: (result: AgentResult<unknown>) => Effect.Effect<string, ToolError> = child.toOutput

/**
 * An agent as a tool of another: it is given a task in words and answers with its text. A program's parameters are those
 * of its input. A failure of the sub-agent is told to the parent's model.
 */
export const asTool = <O, E, R>(
  agent: Agent<O, E, R>,
  options?: {
    /** The name of the tool. Default: the agent's name. */
    readonly name?: string | undefined
    /** The description for the model. Default: the agent's description. */
    readonly description?: string | undefined
    /** Facts about the tool. Default: `resumable`. */
    readonly annotations?: Tool.Annotations | undefined
  }
): Tool.Tool<R | ToolContext> => {
  const problem = checkAsTool(options)
  const { inputOf, parameters } = child.parametersOf(definitionOf(agent))
  const tool = Tool.make(options?.name ?? agent.name, {
    description: options?.description ?? agent.description,
    parameters,
    reaches: toolNames(agent),
    annotations: { resumable: true, ...options?.annotations },
    execute: (args) => Effect.flatMap(delegate(agent, inputOf(args)), toToolResult)
  })
  return refuseTool(problem, tool)
}
