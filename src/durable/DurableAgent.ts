/**
 * An agent as a workflow: a run that resumes after a crash, on another machine, and waits for days without a process.
 *
 * The thread stores the state of the run, and the workflow resumes it until the end. Turns of the model and tool calls are
 * activities, so each result is stored before the next step. Approvals wait in durable deferreds, waits and expiries in
 * durable clocks. The agent is the same value that runs anywhere else.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { DurableAgent } from "effect-deepagents/durable"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { WorkflowEngine } from "effect/workflow"
 *
 * const agent = Agent.make({ name: "clerk", prompt: "You file what comes in." })
 * const clerk = DurableAgent.make({ name: "clerk", agent })
 *
 * const program = Effect.map(
 *   DurableAgent.execute(clerk, { threadId: "ada", inputId: "mail-1", input: "File this" }),
 *   (outcome) => outcome.text
 * ).pipe(
 *   Effect.provide(DurableAgent.layer(clerk)),
 *   Effect.provide(Layer.mergeAll(WorkflowEngine.layerMemory, MemorySessions.layer))
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowEngine, type WorkflowInstance } from "effect/workflow/WorkflowEngine"
import * as Agent from "../core/Agent.ts"
import { AgentError } from "../core/AgentError.ts"
import { type Decision, problemOf, type Request } from "../core/Approval.ts"
import { Journal } from "../core/Journal.ts"
import { HumanMessage } from "../core/Message.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { InvalidEncoding } from "../core/schema/encoding.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { check } from "../support/options/check.ts"
import { Conflict } from "./Conflict.ts"
import { outputOf } from "./internal/activities.ts"
import { asActivities } from "./internal/asActivities.ts"
import { codecs, type Codecs, type Terms } from "./internal/codecs.ts"
import { decisionsOn, deferredFor } from "./internal/decisions.ts"
import * as inputs from "./internal/inputs.ts"
import { boundAnswer, checkMessage } from "./internal/limits.ts"
import { fromResult as outcomeOf } from "./internal/outcome.ts"
import { pendingOf, plan, type Push } from "./internal/plan.ts"
import { readTerms } from "./internal/readTerms.ts"
import { retryUntilFinal } from "./internal/retries.ts"
import * as shapes from "./internal/shapes.ts"
import type { Outcome } from "./Outcome.ts"

export type { Terms }

const payload = { threadId: Schema.String, inputId: Schema.String, input: HumanMessage }

/** An input to a thread. */
export interface SentInput {
  readonly threadId: string
  /** Identifies the input: repeating it, with any content, has no effect and gives the first outcome. */
  readonly inputId: string
  /** Text, blocks, or a message. */
  readonly input: inputs.Input
}

/** The failures of a durable agent's workflow. */
type Failure<E> = E | ModelError | AgentError

/** A durable agent. Other workflows can execute its `workflow` as a child. */
export interface DurableAgent<in out O, in out E, out R> {
  readonly name: string
  readonly agent: Agent.Agent<O, E, R>
  readonly codecs: Codecs<O, E>
  readonly workflow: Workflow.Workflow<
    string,
    Schema.Struct<typeof payload>,
    Schema.Codec<Outcome<Exclude<O, undefined>>, unknown>,
    Schema.Codec<Failure<E>, unknown>
  >
}

const checkMake = check(shapes.durableAgentMake)

/**
 * Makes a durable agent. `name` is the name of the workflow. Stored data refers to it, so keep it. Outcomes and failures are
 * stored: an agent with an `output` schema, or with errors of its own, needs their schemas (`output`, `error`). Assign
 * `Agent.provide(…)` to a constant first, because TypeScript infers too little of it inline.
 */
export const make = <O, E, R>(
  options: {
    /** The name of the workflow, which stored runs refer to: keep it. */
    readonly name: string
    /** The agent. Give an agent that has a name: TypeScript infers too little of `Agent.provide(…)` written here. */
    readonly agent: Agent.Agent<O, E, R>
  } & Terms<O, E>
): DurableAgent<O, E, R> => {
  const terms = readTerms(checkMake, options)
  const agentCodecs = codecs<O, E>(terms)
  const workflow = Workflow.make(terms.name, {
    payload,
    idempotencyKey: ({ inputId, threadId }) => JSON.stringify([threadId, inputId]),
    success: agentCodecs.done,
    error: agentCodecs.failure
  })
  return { name: terms.name, agent: terms.agent, codecs: agentCodecs, workflow }
}

/** Runs an input until its final outcome, and waits for decisions between runs. */
const attempt = Effect.fnUntraced(function* <O, E, R>(
  durable: DurableAgent<O, E, R>,
  inputMessage: typeof payload.input.Type,
  threadId: string
) {
  const store = yield* SessionStore
  const services = yield* Effect.context<WorkflowEngine | WorkflowInstance>()
  const agent = Agent.around(durable.agent, asActivities)
  let push: Push = { _tag: "Input", message: inputMessage }
  for (;;) {
    const planned = plan(store, agent, durable.codecs, threadId, push, (turn) =>
      turn === undefined ? "tell" : (call) => Effect.provideContext(outputOf(turn.id, call.id), services)
    )
    const todo = yield* Effect.catchIf(
      planned,
      (error) => error instanceof Conflict,
      ({ message }) => Effect.fail(invalid(durable, message))
    )
    const outcome: Outcome<O> =
      todo._tag === "Settled"
        ? todo.outcome
        : outcomeOf(yield* Effect.provideService(Agent.run(agent, todo.input, { threadId }), Journal, todo.journal))
    // A run that is not suspended has its answer.
    if (outcome.stopReason !== "suspended") return outcome as Outcome<Exclude<O, undefined>>
    push = { _tag: "Decisions", decisions: yield* decisionsOn(outcome.pending), message: inputMessage }
  }
})

/**
 * Registers the workflow with the engine. Of two concurrent inputs of a thread, one fails with `Conflict`. Use an
 * `AgentEntity` if inputs may come at any time: it queues them.
 */
export const layer = <O, E, R>(
  durable: DurableAgent<O, E, R>
): Layer.Layer<never, never, WorkflowEngine | SessionStore | Exclude<R, WorkflowEngine | WorkflowInstance>> =>
  // A workflow provides the engine and the instance, so the agent may need them.
  durable.workflow.toLayer(({ input, threadId }) =>
    boundAnswer(durable.name, threadId, durable.codecs)(retryUntilFinal(attempt(durable, input, threadId)))
  ) as Layer.Layer<never, never, WorkflowEngine | SessionStore | Exclude<R, WorkflowEngine | WorkflowInstance>>

const invalid = (durable: { readonly name: string }, problem: string): AgentError =>
  new AgentError({ agent: durable.name, reason: { _tag: "InvalidInput", problem } })

const inThread = <A, R>(
  durable: { readonly name: string },
  effect: Effect.Effect<A, SessionError, R>
): Effect.Effect<A, AgentError, R> =>
  Effect.mapError(effect, (error) => new AgentError({ agent: durable.name, reason: { _tag: "Thread", error } }))

/** The attributes of a span, without content. */
const attributesOf = ({ name }: { readonly name: string }, { inputId, threadId }: SentInput) => ({
  "agent.name": name,
  "thread.id": threadId,
  "input.id": inputId
})

const toPayload = ({ input, inputId, threadId }: SentInput) => ({
  threadId,
  inputId,
  input: inputs.toMessage(input, inputId)
})

const checkSent = <O, E, R>(durable: DurableAgent<O, E, R>, operation: string, submission: SentInput) =>
  Effect.suspend(() => {
    const payload = toPayload(submission)
    return Effect.as(
      inThread(durable, checkMessage(operation, submission.threadId, "the input", submission.inputId, payload)),
      payload
    )
  })

/**
 * Runs an input, and waits for its outcome. An input may have 15 MiB as JSON (an `AgentError` with `TooLarge`): put a larger
 * file where the agent can read it, and send its path.
 */
export const execute = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  submission: SentInput
): Effect.Effect<Outcome<Exclude<O, undefined>>, Failure<E>, WorkflowEngine> =>
  Effect.flatMap(checkSent(durable, "execute", submission), (payload) => durable.workflow.execute(payload)).pipe(
    Effect.withSpan("DurableAgent.execute", { attributes: attributesOf(durable, submission) })
  )

/** Runs an input without waiting. Gives the id of the execution, for {@link poll} and {@link interrupt}. */
export const start = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  submission: SentInput
): Effect.Effect<string, AgentError, WorkflowEngine> =>
  Effect.flatMap(checkSent(durable, "start", submission), (payload) =>
    durable.workflow.execute(payload, { discard: true })
  ).pipe(Effect.withSpan("DurableAgent.start", { attributes: attributesOf(durable, submission) }))

/** Reads the state of an execution: unknown, suspended or complete. */
export const poll = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  executionId: string
): Effect.Effect<Option.Option<Workflow.Result<Outcome<Exclude<O, undefined>>, Failure<E>>>, never, WorkflowEngine> =>
  durable.workflow.poll(executionId)

/** Lists the pending requests of a thread. A missing thread has none. */
export const pending = (
  threadId: string
): Effect.Effect<ReadonlyArray<Request>, SessionError | InvalidEncoding, SessionStore> =>
  SessionStore.use((store) => pendingOf(store, threadId))

/**
 * Decides requests of an input, from any process. The execution resumes when all of its requests are decided. The first
 * decision on a request counts. Fails with `InvalidInput` for a request that is not pending, or a decision that it does not
 * allow.
 */
export const decide = Effect.fn("DurableAgent.decide")(function* <O, E, R>(
  durable: DurableAgent<O, E, R>,
  { inputId, threadId }: Pick<SentInput, "threadId" | "inputId">,
  decisions: ReadonlyArray<Decision>
): Effect.fn.Return<void, AgentError | SessionError | InvalidEncoding, WorkflowEngine | SessionStore> {
  const waiting = yield* pending(threadId)
  for (const decision of decisions) {
    const request = waiting.find(({ id }) => id === decision.id)
    if (request === undefined)
      return yield* invalid(durable, `nothing waits for a decision with the id "${decision.id}"`)
    const problem = problemOf(request, decision)
    if (problem !== undefined) return yield* invalid(durable, problem)
    yield* checkMessage("decide", threadId, "the decision", decision.id, decision)
  }
  const executionId = yield* durable.workflow.executionId(toPayload({ threadId, inputId, input: "" }))
  for (const decision of decisions) {
    const deferred = deferredFor(decision.id)
    const token = DurableDeferred.tokenFromExecutionId(deferred, { workflow: durable.workflow, executionId })
    yield* DurableDeferred.succeed(deferred, { token, value: decision })
  }
})

/** Interrupts an execution with its model call and tools. The thread keeps its partial result, and stays valid. */
export const interrupt = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  executionId: string
): Effect.Effect<void, never, WorkflowEngine> =>
  WorkflowEngine.use((engine) => engine.interruptUnsafe(durable.workflow, executionId))
