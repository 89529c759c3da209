/**
 * An agent as a workflow: a run that resumes after a crash, on another machine, and waits for days without a process.
 *
 * The thread is what the run has come to; the workflow brings it to its end. Its activities are the turns of the model
 * and the tool calls, so what was paid for and what was done is stored before the next thing happens. Approvals wait in
 * durable deferreds, waits and expiries in durable clocks. The agent is the same value that runs anywhere else.
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
import { Conflict } from "./Conflict.ts"
import { outputOf } from "./internal/activities.ts"
import { asActivities } from "./internal/asActivities.ts"
import { type Answer, codecs, type Codecs, type Own } from "./internal/codecs.ts"
import { decisionsOn, deferredFor } from "./internal/decisions.ts"
import * as inputs from "./internal/inputs.ts"
import { answerable, checkMessage } from "./internal/limits.ts"
import { pendingOf, plan, type Push } from "./internal/plan.ts"
import { lasting } from "./internal/retries.ts"
import { fromResult as outcomeOf, type Outcome } from "./Outcome.ts"

export type { Answer, Own }

const payload = { threadId: Schema.String, inputId: Schema.String, input: HumanMessage }

/** The input of a durable agent: text, blocks, or a message. */
export type Input = inputs.Input

/**
 * One input to one thread. `inputId` makes it one: an input that comes again, with whatever words, is not taken again,
 * and gets the outcome that it had.
 */
export interface Sent {
  readonly threadId: string
  readonly inputId: string
  readonly input: Input
}

/** The failures of a durable agent's workflow. */
export type Failure<E> = E | ModelError | AgentError

/**
 * The schemas that an agent's outcomes are stored and sent with: of its output, unless that is text, and of the
 * failures of its middleware, if it has any.
 */
export type Terms<O, E> = ([string] extends [Answer<O>]
  ? { readonly output?: undefined }
  : { readonly output: Schema.ConstraintCodec<Answer<O>, unknown> }) &
  ([Own<E>] extends [never]
    ? { readonly error?: undefined }
    : { readonly error: Schema.ConstraintCodec<Own<E>, unknown> })

/** A durable agent. `workflow` can be executed by other workflows, as a child. */
export interface DurableAgent<in out O, in out E, out R> {
  readonly name: string
  readonly agent: Agent.Agent<O, E, R>
  readonly codecs: Codecs<O, E>
  readonly workflow: Workflow.Workflow<
    string,
    Schema.Struct<typeof payload>,
    Schema.Codec<Outcome<Answer<O>>, unknown>,
    Schema.Codec<Failure<E>, unknown>
  >
}

/**
 * Makes a durable agent. `name` is the name of the workflow: what is stored goes by it, so keep it. An agent with an
 * `output` schema, or with middleware or a program that fails with errors of its own, has to say their schemas (`output`,
 * `error`): outcomes and failures are stored. (Give an agent that has a name: TypeScript infers too little of `Agent.provide(…)`
 * written in here.)
 */
export const make = <O, E, R>(
  options: { readonly name: string; readonly agent: Agent.Agent<O, E, R> } & Terms<O, E>
): DurableAgent<O, E, R> => {
  const known = codecs<O, E>(options)
  const workflow = Workflow.make(options.name, {
    payload,
    idempotencyKey: ({ inputId, threadId }) => JSON.stringify([threadId, inputId]),
    success: known.done,
    error: known.failure
  })
  return { name: options.name, agent: options.agent, codecs: known, workflow }
}

/** Brings an input to its end: run after run, with what is waited for between them. */
const attempt = Effect.fnUntraced(function* <O, E, R>(
  durable: DurableAgent<O, E, R>,
  sent: typeof payload.input.Type,
  threadId: string
) {
  const store = yield* SessionStore
  const services = yield* Effect.context<WorkflowEngine | WorkflowInstance>()
  const agent = Agent.around(durable.agent, asActivities)
  let push: Push = { _tag: "Input", message: sent }
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
    if (outcome.stopReason !== "suspended") return outcome as Outcome<Answer<O>>
    push = { _tag: "Decisions", decisions: yield* decisionsOn(outcome.pending), message: sent }
  }
})

/**
 * Runs the workflow where the engine says. One input of a thread at a time: a second one that is begun meanwhile makes
 * one of the two fail with `Conflict`. Where inputs can come at any time, use an `AgentEntity`, which has them queue.
 */
export const layer = <O, E, R>(
  durable: DurableAgent<O, E, R>
): Layer.Layer<never, never, WorkflowEngine | SessionStore | Exclude<R, WorkflowEngine | WorkflowInstance>> =>
  // The engine and the instance are given to whatever a workflow executes, so the agent may need them.
  durable.workflow.toLayer(({ input, threadId }) =>
    answerable(durable.name, threadId, durable.codecs)(lasting(attempt(durable, input, threadId)))
  ) as Layer.Layer<never, never, WorkflowEngine | SessionStore | Exclude<R, WorkflowEngine | WorkflowInstance>>

const invalid = (durable: { readonly name: string }, problem: string): AgentError =>
  new AgentError({ agent: durable.name, reason: { _tag: "InvalidInput", problem } })

const inThread = <A, R>(
  durable: { readonly name: string },
  effect: Effect.Effect<A, SessionError, R>
): Effect.Effect<A, AgentError, R> =>
  Effect.mapError(effect, (error) => new AgentError({ agent: durable.name, reason: { _tag: "Thread", error } }))

/** The attributes of a span at a door: never what was said. */
const attributesOf = ({ name }: { readonly name: string }, { inputId, threadId }: Sent) => ({
  "agent.name": name,
  "thread.id": threadId,
  "input.id": inputId
})

const toPayload = ({ input, inputId, threadId }: Sent) => ({
  threadId,
  inputId,
  input: inputs.toMessage(input, inputId)
})

const checked = <O, E, R>(durable: DurableAgent<O, E, R>, operation: string, sent: Sent) =>
  Effect.suspend(() => {
    const payload = toPayload(sent)
    return Effect.as(
      inThread(durable, checkMessage(operation, sent.threadId, "the input", sent.inputId, payload)),
      payload
    )
  })

/**
 * Brings an input to its outcome and waits for it, however long that takes. An input may have 15 MiB as JSON (an
 * `AgentError` with `TooLarge`): put a larger file where the agent can read it, and send its path.
 */
export const execute = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  sent: Sent
): Effect.Effect<Outcome<Answer<O>>, Failure<E>, WorkflowEngine> =>
  Effect.flatMap(checked(durable, "execute", sent), (payload) => durable.workflow.execute(payload)).pipe(
    Effect.withSpan("DurableAgent.execute", { attributes: attributesOf(durable, sent) })
  )

/** Has an input worked on and does not wait. Gives the id of the execution, for {@link poll} and {@link interrupt}. */
export const start = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  sent: Sent
): Effect.Effect<string, AgentError, WorkflowEngine> =>
  Effect.flatMap(checked(durable, "start", sent), (payload) =>
    durable.workflow.execute(payload, { discard: true })
  ).pipe(Effect.withSpan("DurableAgent.start", { attributes: attributesOf(durable, sent) }))

/** The state of an execution: nothing known yet, suspended, or complete. */
export const poll = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  executionId: string
): Effect.Effect<Option.Option<Workflow.Result<Outcome<Answer<O>>, Failure<E>>>, never, WorkflowEngine> =>
  durable.workflow.poll(executionId)

/** The requests that a thread waits for: none, if there is no such thread. */
export const pending = (
  threadId: string
): Effect.Effect<ReadonlyArray<Request>, SessionError | InvalidEncoding, SessionStore> =>
  SessionStore.use((store) => pendingOf(store, threadId))

/**
 * Decides on requests that an input waits for, from any process; the execution resumes when all of its requests are
 * decided. The first decision on a request counts. Fails with `InvalidInput` if nothing waits for it, or if it was not
 * offered by `allow`.
 */
export const decide = Effect.fn("DurableAgent.decide")(function* <O, E, R>(
  durable: DurableAgent<O, E, R>,
  { inputId, threadId }: Pick<Sent, "threadId" | "inputId">,
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

/**
 * Stops an execution where it is: its model call, its tools. The thread keeps what it had, and stays valid; the
 * execution completes as interrupted.
 */
export const interrupt = <O, E, R>(
  durable: DurableAgent<O, E, R>,
  executionId: string
): Effect.Effect<void, never, WorkflowEngine> =>
  WorkflowEngine.use((engine) => engine.interruptUnsafe(durable.workflow, executionId))
