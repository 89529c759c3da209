/**
 * Runs scripts over many sub-agents that lose neither work nor money.
 *
 * ```ts
 * import { Console, Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Workflow } from "effect-deepagents/code"
 *
 * const reader = Agent.make({ name: "reader", prompt: "You find defects in a file." })
 * const survey = Workflow.make({ agents: [reader] })
 *
 * const script = `
 *   const found = await parallel(args.map((file) => () => agent("Read " + file)))
 *   return found.filter((one) => one !== null)
 * `
 * const program = Agent.run(survey, survey.input({ script, args: ["a.ts", "b.ts"] }), { threadId: "survey" }).pipe(
 *   Effect.catchTag("WorkflowStopped", (stopped) => Console.log(stopped.message))
 * )
 * ```
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { Backend } from "../core/Backend.ts"
import type { ToolDefinition } from "../core/ChatModel.ts"
import { isObject, Json } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import type * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import { add, totalTokens, zero } from "../core/Usage.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { answerAgent } from "./internal/agents.ts"
import { answerCall, nameOf, type World } from "./internal/answers.ts"
import * as Continued from "./internal/continued.ts"
import { type Refusal, runScript } from "./internal/host.ts"
import { describeWorld } from "./internal/language.ts"
import { progressOf } from "./internal/outputs.ts"
import { fromOutcome, makeKeys, type Outcome, outcomeOf } from "./internal/review/plan.ts"
import { runReviewed } from "./internal/review/review.ts"
import { ownStack } from "./internal/said.ts"
import { definitionOf, makeCatalogue, withoutFence } from "./internal/setup.ts"
import * as shapes from "./internal/shapes.ts"
import * as Values from "./internal/values.ts"
import * as Conductor from "./internal/workflow/conductor.ts"
import { costSlot, fuse, ledger } from "./internal/workflow/fuse.ts"
import { bodyOf } from "./internal/workflow/meta.ts"
import { findSaved, parseSaved, type Problem, type SavedWorkflow } from "./internal/workflow/saved.ts"
import type { ScriptCall, Limits as ScriptLimits, ScriptError, Scripts, ScriptLine } from "./Scripts.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))

/** Limits of a workflow. Raise them by another input on its thread. */
const Limits = Schema.Struct({
  /** The most agents that the script may ask. Agents with stored answers count. Default: 1,000. */
  agents: Schema.optionalKey(Count),
  /** The most agents that work at once. Agents that wait for a person do not count. Default: 16. */
  concurrency: Schema.optionalKey(Count),
  /** The most that all inputs on the thread may cost together, plus the turns in flight. Default: no limit. */
  cost: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0)))
})
type Limits = typeof Limits.Type

/** The input of a workflow: a script, and the value of its `args`. */
export const Input = Schema.Struct({
  script: Schema.String.annotate({ description: "The program: TypeScript, the body of an async function" }),
  args: Schema.optionalKey(Json.annotate({ description: "The value of args" })),
  limits: Schema.optionalKey(Limits),
  continues: Schema.optionalKey(
    Schema.String.annotate({
      description: "The id of a stopped workflow that this one goes on with, as its failure said"
    })
  )
})
export type Input = typeof Input.Type

/** The value of the script, the number of agents that it asked, and how many of them had stored answers. */
const Output = Schema.Struct({ value: Json, agents: Schema.Finite, replayed: Schema.Finite })
type Output = typeof Output.Type

const mostShown = 5

/**
 * A workflow stopped before its script returned. Its work is kept: another input on its thread goes on.
 *
 * - `Terminal`: a provider will not answer until somebody acts (quota, key, permission)
 * - `Limit`, `Budget`: the script asked for more agents, or spent more, than its limits allow
 * - `Script`: the script failed
 * - `Rejected`: a person did not approve a part of the script, or the script left the approved plan
 *
 * `finished` agents have answered. `inFlight` agents have begun, and resume from their own messages. `notBegun` agents
 * were asked for and had to wait; the script might have asked for more later.
 */
export class WorkflowStopped extends TaggedError<WorkflowStopped>()("WorkflowStopped", {
  reason: Schema.Literals(["Terminal", "Limit", "Budget", "Script", "Rejected"]),
  problem: Schema.String,
  finished: Schema.Finite,
  inFlight: Schema.Array(Schema.String),
  notBegun: Schema.Finite,
  /** For a tool of another agent: the id by which another call goes on. Empty if none can. */
  continues: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    const more = this.inFlight.length > mostShown ? ", …" : ""
    const names = this.inFlight
      .slice(0, mostShown)
      .map((label) => JSON.stringify(label))
      .join(", ")
    const flight = this.inFlight.length === 0 ? "" : ` (${names}${more})`
    const goOn =
      this.continues === undefined
        ? "\nGive it another input, on its thread, to go on: what is finished stays finished."
        : this.continues === ""
          ? ""
          : `\nCall it again with the whole script, corrected where it was wrong, and "continues": "${this.continues}": what is finished stays finished.`
    return `The workflow is not finished: ${this.problem}
Agents: ${this.finished} finished, ${this.inFlight.length} in flight${flight}, ${this.notBegun} asked for and not begun.${goOn}`
  }
}

/** Options of a workflow. */
export interface Options<Tools, Agents> {
  /** The name of the workflow, in events and errors. Default: `workflow`. */
  readonly name?: string | undefined
  /** The description for other agents. Default: it runs programs over agents, with their declarations. */
  readonly description?: string | undefined
  /** The agents of `agent(…)`; without a name the first one. */
  readonly agents: Agents
  /** The tools of the script itself. Default: none. */
  readonly tools?: Tools | undefined
  /**
   * Has a person approve each script as a whole, as {@link CodeMode} does. No agent begins before the person has seen its
   * prompt. After the answers of agents there is another part, with a question of its own. Default: `false`.
   */
  readonly review?: boolean | undefined
  /** The limits of an input that sets none. Default: 1,000 agents, 16 at once, any cost. */
  readonly limits?: Limits | undefined
  /** The limits of the script in its thread. Default: 64 MiB, 1 minute of computing, 100,000 calls. */
  readonly script?: ScriptLimits | undefined
}

/** The tokens of declarations in a description. */
const inline = 3_000

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

const describe = (tools: ReadonlyArray<ToolDefinition>, agents: ReadonlyArray<AnyAgent>): string =>
  `Runs a program over many agents: for work of more parts than you can hold in mind. There is no fetch, no require, no process. You see the value that the program returns.\n${describeWorld(tools, agents, inline)}`

type AnyOptions = Partial<Options<ReadonlyArray<Tool.Tool<unknown>>, ReadonlyArray<AnyAgent>>>

const describeFailure = ({ message, reason, stack }: ScriptError): string => {
  const lines = ownStack(stack)
  return `the script failed (${reason}): ${message}${lines === "" ? "" : `\n${lines}`}`
}

const stop = (conductor: Conductor.Conductor, reason: WorkflowStopped["reason"], problem: string): WorkflowStopped => {
  const inFlight = [...conductor.open].map(({ label }) => label)
  const notBegun = conductor.asked - conductor.finished - inFlight.length
  return new WorkflowStopped({
    reason,
    problem,
    finished: conductor.finished,
    inFlight,
    notBegun: Math.max(0, notBegun)
  })
}

const textAt = (args: Json, key: string): string | undefined => {
  const value = isObject(args) ? args[key] : undefined
  return typeof value === "string" ? value : undefined
}

const plural = (count: number): string => (count === 1 ? "one agent" : `${count} agents`)

/** Answers a call by the result of an earlier workflow, or by its work. */
type Recall = (
  call: ScriptCall,
  work: Effect.Effect<Json, Refusal, unknown>,
  onKnown?: Effect.Effect<void>
) => Effect.Effect<Json, Refusal, unknown>

/** The results of the workflow that this one continues. The label of an agent is for people: it is not its content. */
const makeRecall = (world: World, outcomes: Map<string, Outcome>): Recall => {
  const keyOf = makeKeys()
  return (call, work, onKnown = Effect.void) => {
    const { label: _label, ...given } = isObject(call.given) ? call.given : {}
    const key = keyOf(call.kind === "agent" ? { ...call, given } : call, nameOf(world, call))
    const outcome = outcomes.get(key)
    return outcome === undefined
      ? Effect.flatMap(outcomeOf(work), (outcome) =>
          Effect.andThen(
            Effect.sync(() => outcomes.set(key, outcome)),
            fromOutcome(outcome)
          )
        )
      : Effect.andThen(onKnown, fromOutcome(outcome))
  }
}

/** Answers the calls of a workflow's script. A halted workflow begins nothing, and its script is not told. */
const makeDoor = (own: World, conductor: Conductor.Conductor, recall: Recall) => {
  const { bounds } = conductor
  /** The use of the agents that have answered this attempt of the script, so that it computes the same again. */
  let used = zero
  const agents = {
    agents: own.agents,
    askCounts: own.askCounts,
    onUsage: (usage: typeof zero) => {
      used = add(used, usage)
    }
  }

  const askAgent = (call: ScriptCall): Effect.Effect<Json, Refusal, unknown> => {
    const { given: args } = call
    if (conductor.asked > bounds.agents) {
      const problem = `its script asks for more than ${plural(bounds.agents)}, its limit.`
      return Effect.andThen(Conductor.halt(conductor, "Limit", problem), Effect.never)
    }
    const called = { label: textAt(args, "label") ?? textAt(args, "prompt") ?? "", phase: textAt(args, "phase") }
    const finish = Effect.sync(() => {
      conductor.finished++
    })
    const work = Effect.matchEffect(Conductor.inTurn(conductor, called, answerAgent(agents, args)), {
      onSuccess: (value) => Effect.as(finish, value),
      onFailure: (refusal) =>
        conductor.halt === undefined ? Effect.andThen(finish, Effect.fail(refusal)) : Effect.never
    })
    const replay = Effect.sync(() => {
      conductor.replayed++
    })
    return recall(call, work, Effect.andThen(replay, finish))
  }

  const budget = (name: string): Json => {
    const { cost = 0 } = used
    if (name === "budget.spent") return { agents: conductor.asked, tokens: totalTokens(used), cost }
    const remaining = bounds.cost === undefined ? {} : { cost: Math.max(0, bounds.cost - cost) }
    return { agents: Math.max(0, bounds.agents - conductor.asked), ...remaining }
  }

  const answer = (world: World, call: ScriptCall): Effect.Effect<Json, Refusal, unknown> => {
    if (call.kind === "agent") return askAgent(call)
    if (call.kind === "budget") return Effect.sync(() => budget(call.name))
    return recall(call, answerCall(world, call))
  }

  return {
    answer: (world: World, call: ScriptCall) =>
      Effect.suspend(() => {
        if (call.kind === "agent") conductor.asked++
        return conductor.halt === undefined ? answer(world, call) : Effect.never
      }),
    tell: (message: ScriptLine) => {
      if (message.kind === "phase") conductor.phase = message.text
      return own.context.emit(progressOf(message))
    },
    working: <A, E, R>(work: Effect.Effect<A, E, R>) => Conductor.countActive([conductor], own.context.working(work))
  }
}

/** Keeps the results of a workflow that was a tool, and fails with the id by which another call goes on. */
const keepStopped = Effect.fnUntraced(function* (
  { state: slots }: ToolContext["Service"],
  script: Continued.Continued,
  stopped: WorkflowStopped
) {
  const isKept = yield* Continued.keepFailed(slots, Continued.stoppedSlot, script)
  return yield* new WorkflowStopped({ ...stopped, continues: isKept ? script.id : "" })
})

const refuseMake = makeMiddlewareCheck("Workflow", shapes.workflowMake)

/**
 * Makes a workflow: a program that runs scripts over agents. Run it with a `threadId`. A later input on the thread, such
 * as an edited script or other limits, finds the work of earlier inputs by its content: agents that have answered answer
 * again at once, and agents in flight go on from their own messages.
 *
 * The script is TypeScript or JavaScript, as in {@link CodeMode}, with `agent(prompt, { agent, session, schema, label })`.
 */
export const make = <
  const Agents extends ReadonlyArray<AnyAgent>,
  const Tools extends ReadonlyArray<Tool.Tool<unknown>> = ReadonlyArray<Tool.Tool>
>(
  options: Options<Tools, Agents>
): Agent.Program<
  Input,
  Output | undefined,
  WorkflowStopped,
  Exclude<Scripts | Tool.ServicesIn<Tools[number], undefined> | Agent.Services<Agents[number]>, ToolContext>
> => {
  const refused = refuseMake(options)
  // Wrong options make an agent that never runs.
  const {
    agents = [],
    limits = {},
    description,
    review = false,
    script: scriptLimits,
    tools = []
  }: AnyOptions = refused === undefined ? options : {}
  const own = tools.map((tool) => definitionOf(tool))
  const catalogueOf = makeCatalogue()
  const scriptBounds = {
    ...scriptLimits,
    calls: scriptLimits?.calls ?? 100_000,
    time: scriptLimits?.time ?? "1 minute"
  }

  const run = Effect.fnUntraced(function* ({ args = null, continues, limits: inputLimits, script }: Input) {
    const context = yield* ToolContext
    const { agents: most = 1_000, concurrency = 16, cost } = { ...limits, ...inputLimits }
    const before = yield* context.state.get(costSlot)
    const conductor = Conductor.make(context, { agents: most, concurrency, cost }, before.cost)
    const world: World = {
      context,
      tools: own,
      catalogue: catalogueOf(own),
      agents,
      slots: conductor.slots,
      calls: scriptBounds.calls,
      values: Values.make(context, "thread"),
      made: 0,
      askCounts: new Map()
    }
    // On a thread, the records find the work of earlier inputs. Another call of a tool is another run.
    const isTool = context.run.parent !== undefined
    if (continues !== undefined && !isTool) {
      return yield* stop(conductor, "Script", "`continues` is for a workflow that is a tool: leave it out on a thread.")
    }
    const openScript = Continued.open(context, Continued.stoppedSlot, canonical([script, args]), continues)
    const opening = yield* Effect.mapError(
      openScript,
      ({ message }) => new WorkflowStopped({ ...stop(conductor, "Script", message), continues: "" })
    )
    const { now, seed } = opening
    const program = {
      source: bodyOf(withoutFence(script)),
      args,
      seed,
      now,
      tools: own.map((tool) => tool.name),
      limits: scriptBounds
    }
    const recall: Recall = isTool && !review ? makeRecall(world, opening.outcomes) : (_call, work) => work
    const { answer, ...door } = makeDoor(world, conductor, recall)
    const work: Effect.Effect<Json, ScriptError | ToolError.ToolError, unknown> = review
      ? runReviewed({
          ...door,
          // Records outlive the input: another script has other steps.
          name: `script/${sha256Sync(canonical([script, args])).slice(0, 16)}`,
          program,
          makeWorld: () => world,
          outcomes: opening.outcomes,
          answer,
          note: "The agents work under their own rules. An agent that has answered before answers from its record.",
          onDone: () => undefined
        })
      : runScript(program, { ...door, answer: (call) => answer(world, call) })
    const value = yield* Effect.raceFirst(
      Effect.mapError(work, (error) =>
        ToolError.isToolError(error)
          ? stop(conductor, "Rejected", error.message)
          : stop(conductor, "Script", describeFailure(error))
      ),
      Effect.flatMap(Deferred.await(conductor.stopped), (halt) =>
        Effect.fail(stop(conductor, halt.reason, halt.message))
      )
    ).pipe(Effect.catch((stopped) => (isTool ? keepStopped(context, opening, stopped) : Effect.fail(stopped))))
    if (continues !== undefined) yield* Continued.forget(context.state, Continued.stoppedSlot, opening)
    return { value, agents: conductor.asked, replayed: conductor.replayed }
  })

  type Needs = Scripts | Agent.Services<Agents[number]>
  return Agent.program({
    name: typeof options.name === "string" ? options.name : "workflow",
    description: description ?? describe(own, agents),
    keeps: true,
    input: Input,
    output: Output,
    // Only the type of the options knows the needs of the tools.
    tools: tools as Tools,
    middleware: [fuse, ledger, state, Middleware.suspendable, ...(refused === undefined ? [] : [refused])],
    reaches: new Set(agents.flatMap((agent) => [...Agent.toolNames(agent)])),
    run: run as (input: Input) => Effect.Effect<Output, WorkflowStopped, Needs>
  })
}

/** The values that scripts store. */
const state = Middleware.make({ name: "WorkflowStore", state: [Values.storeSlot, Continued.stoppedSlot] })

export { advance, noProgress } from "./internal/workflow/progress.ts"
export type { AgentProgress, Progress } from "./internal/workflow/progress.ts"
export type { Problem, SavedWorkflow } from "./internal/workflow/saved.ts"

/**
 * Reads the workflows that are saved in folders, such as `.deepagents/workflows`: a file of TypeScript or JavaScript each,
 * with `export const meta = { name, description, phases }` at its head. The head is read as data, and nothing is run. Of
 * two workflows with one name, the first folder wins.
 */
export const saved: (folders: ReadonlyArray<string>) => Effect.Effect<
  {
    readonly workflows: ReadonlyArray<SavedWorkflow>
    /** The files without a valid workflow, each with its problem. */
    readonly problems: ReadonlyArray<{ readonly path: string; readonly problem: string }>
  },
  never,
  Backend
> = findSaved

/** Reads one saved workflow from the text of its file, as {@link saved} does. `path` names the file in problems. */
export const parse: (text: string, path: string) => Result.Result<SavedWorkflow, Problem> = parseSaved
