/**
 * Find all that waits for a person, over all threads of a store, and decide on it: approvals, questions, permissions, of
 * sub-agents and tasks in the background too.
 *
 * It reads the threads of the `SessionStore` in context, whichever that is, also those of a cluster. Who has taken which
 * request is kept in a thread of the same store (`deepagents/inbox`), so that two people in two processes don't take the
 * same one.
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
import { make } from "./internal/inbox.ts"
import { type ClassifyOptions, type Deliver, InboxError, type Options, type Service } from "./internal/inboxModel.ts"
import type { Notify } from "./Notify.ts"

export {
  type ClassifyOptions,
  type Deliver,
  InboxError,
  Item,
  type Options,
  type Query,
  Reason,
  type Service
} from "./internal/inboxModel.ts"

/** An item that waits for a person. */
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
    // The failures and needs of the agents are in their types, and are put back here.
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

/** Makes an inbox of the store in context. With `BackgroundTasks` in context, it has what their tasks wait for, too. */
export const layer = <E, R>(options: Options<E, R>): Layer.Layer<Inbox, never, SessionStore | R> =>
  Layer.effect(Inbox, make(options))

/**
 * Makes the inbox the one who decides while a run waits: its requests are listed like others, and are gone with the run.
 */
export const approvals: Layer.Layer<Approval.Approvals, never, Inbox> = Layer.effect(
  Approval.Approvals,
  Inbox.use(({ wait }) => Effect.succeed({ decide: wait }))
)

/** Looks for what is new again and again, and tells of it. A failure of the store is logged, and tried again. */
export const watch = (options?: {
  readonly every?: Duration.Input | undefined
}): Effect.Effect<never, never, Inbox | Notify> =>
  Inbox.use(({ notify }) =>
    Effect.forever(
      Effect.andThen(
        Effect.catch(notify, (error) => Effect.logWarning(error.message)),
        Effect.sleep(options?.every ?? "10 seconds")
      )
    )
  )

/**
 * Has a classifier decide on what waits in threads, again and again, as `ApprovalClassifier.layer` does on runs that
 * wait: what it may decide on, nobody has taken, and it is sure of. It leaves a thread to a person after three refusals
 * in it, and all of them after two failures in a row, which are logged, until a minute has passed. That is kept in the
 * store: it holds in every process, and in the next one.
 */
export const classify = <E, R>(options: {
  readonly classify: ClassifyOptions<E, R>["classify"]
  readonly by?: Approval.Principal | undefined
  readonly every?: Duration.Input | undefined
}): Effect.Effect<never, never, Inbox | R> =>
  Inbox.use((inbox) => {
    const { by = { id: "classifier" }, every = "20 seconds" } = options
    const sweep = Effect.flatMap(Effect.exit(inbox.classify({ classify: options.classify, by })), (exit) =>
      Exit.isSuccess(exit) ? Effect.void : Effect.logWarning("The classifier could not decide", exit.cause)
    )
    return Effect.forever(Effect.andThen(sweep, Effect.sleep(every)))
  })
