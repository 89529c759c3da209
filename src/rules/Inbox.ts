/**
 * List the pending approvals and questions of all threads in a store, and decide on them. Sub-agents, file rules and
 * background tasks are included.
 *
 * It reads the `SessionStore` in context, of a cluster too. A thread of the same store (`deepagents/inbox`) keeps the
 * claims, so that two people in two processes don't claim the same request.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Approval } from "effect-deepagents"
 * import { Inbox } from "effect-deepagents/rules"
 * import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
 *
 * declare const clerk: Agent.Agent<string | undefined, never, never>
 *
 * const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
 * const inbox = Inbox.layer({ deliver: Inbox.toAgents([clerk]) }).pipe(Layer.provideMerge(sessions))
 *
 * const program = Effect.gen(function* () {
 *   const { claim, decide, list } = yield* Inbox.Inbox
 *   const by = { id: "ada", roles: ["finance"] }
 *   for (const { id, request } of yield* list({ severities: ["high"] })) {
 *     yield* claim(id, { by })
 *     yield* decide([Approval.approve(request)], { by })
 *   }
 * }).pipe(Effect.provide(inbox))
 * ```
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import * as Approval from "../core/Approval.ts"
import type { Journal } from "../core/Journal.ts"
import type { SessionStore } from "../core/SessionStore.ts"
import { makeEffectCheck, makeLayerCheck } from "../support/options/check.ts"
import { make } from "./internal/inbox.ts"
import { type ClassifyOptions, type Deliver, InboxError, type Options, type Service } from "./internal/inboxModel.ts"
import * as shapes from "./internal/shapes.ts"
import type { Notify } from "./Notify.ts"

export type { ClassifyOptions, Deliver, Options } from "./internal/inboxModel.ts"

export { InboxError } from "./internal/inboxModel.ts"

/** The pending requests of all threads, and the decisions on them. */
export class Inbox extends Context.Service<Inbox, Service>()("effect-deepagents/Inbox") {}

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** Delivers by resuming the agent whose name is the first of the request's path, in this process. */
export const toAgents =
  <const Agents extends ReadonlyArray<AnyAgent>>(
    agents: Agents
  ): Deliver<Agent.Error<Agents[number]> | AgentError | InboxError, Agent.Services<Agents[number]> | Journal> =>
  (threadId, decisions, name) => {
    const agent = agents.find((one) => one.name === name)
    const problem = `there is no agent "${name}" here, only ${agents.map((one) => one.name).join(", ")}`
    // Restores the failures and needs from the types of the agents.
    return (
      agent === undefined
        ? Effect.fail(new InboxError({ id: "", reason: { _tag: "Undeliverable", problem } }))
        : Agent.resume(agent, { threadId, decisions })
    ) as Effect.Effect<
      unknown,
      Agent.Error<Agents[number]> | AgentError | InboxError,
      Agent.Services<Agents[number]> | Journal
    >
  }

const refuseLayer = makeLayerCheck("Inbox.layer", shapes.inboxLayer)

/** Makes an inbox of the store in context. With `BackgroundTasks` in context, it lists the requests of tasks too. */
export const layer = <E, R>(options: Options<E, R>): Layer.Layer<Inbox, never, SessionStore | R> =>
  refuseLayer(options) ?? Layer.effect(Inbox, make(options))

/** Lets runs wait for decisions in the inbox. Their requests are listed, and disappear with the run. */
export const approvals: Layer.Layer<Approval.Approvals, never, Inbox> = Layer.effect(
  Approval.Approvals,
  Inbox.use(({ wait }) => Effect.succeed({ decide: wait }))
)

const refuseWatch = makeEffectCheck("Inbox.watch", shapes.inboxWatch)

/** Sends notifications of new requests, again and again. It logs failures of the store, and tries again. */
export const watch = (options?: {
  /** The time between two looks. Default: 10 seconds. */
  readonly every?: Duration.Input | undefined
}): Effect.Effect<never, never, Inbox | Notify> =>
  refuseWatch(options) ??
  Inbox.use(({ notify }) =>
    Effect.forever(
      Effect.andThen(
        Effect.catch(notify, (error) => Effect.logWarning(error.message)),
        Effect.sleep(options?.every ?? "10 seconds")
      )
    )
  )

const refuseClassify = makeEffectCheck("Inbox.classify", shapes.inboxClassify)

/**
 * Lets a classifier decide on requests of threads, again and again, as `ApprovalClassifier.layer` does for waiting runs. It
 * decides on unclaimed requests that it is sure of. After three refusals it leaves a thread to a person. After two failures
 * in a row it pauses for a minute. The store keeps these counts for all processes.
 */
export const classify = <E, R>(options: {
  /** Judges requests, and gives the verdicts in their order. */
  readonly classify: ClassifyOptions<E, R>["classify"]
  /** The principal of the decisions. Default: `classifier`. */
  readonly by?: Approval.Principal | undefined
  /** The time between two looks. Default: 20 seconds. */
  readonly every?: Duration.Input | undefined
}): Effect.Effect<never, never, Inbox | R> =>
  refuseClassify(options) ??
  Inbox.use((inbox) => {
    const { by = { id: "classifier" }, every = "20 seconds" } = options
    const sweep = Effect.flatMap(Effect.exit(inbox.classify({ classify: options.classify, by })), (exit) =>
      Exit.isSuccess(exit) ? Effect.void : Effect.logWarning("The classifier could not decide", exit.cause)
    )
    return Effect.forever(Effect.andThen(sweep, Effect.sleep(every)))
  })
