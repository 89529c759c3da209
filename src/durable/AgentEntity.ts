/**
 * Agents spread over machines: each thread is an entity of the cluster, and has one writer, wherever that is.
 *
 * Inputs and decisions are stored before they are answered, one at a time in the order in which they came. A runner
 * that dies is replaced: what it had not answered comes to another runner, which resumes what the thread has come to. A
 * thread without work leaves the memory, and is woken by an input, a decision or a time.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AgentClient, AgentEntity } from "effect-deepagents/durable"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { TestRunner } from "effect/cluster"
 *
 * const agent = Agent.make({ name: "support", prompt: "You help customers." })
 * const support = AgentEntity.make({ name: "support", agent })
 *
 * const program = Effect.gen(function* () {
 *   const ada = yield* AgentClient.of(support, "ada")
 *   return yield* ada.send("Where is my order?", { id: "mail-1" })
 * }).pipe(
 *   Effect.provide(AgentEntity.layer(support).pipe(Layer.provideMerge(TestRunner.layer))),
 *   Effect.provide(MemorySessions.layer)
 * )
 * ```
 */
import * as Entity from "effect/cluster/Entity"
import * as Sharding from "effect/cluster/Sharding"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Rpc from "effect/rpc/Rpc"
import type * as Agent from "../core/Agent.ts"
import { approve } from "../core/Approval.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { persistent } from "../sessions/journal.ts"
import type { Terms } from "./DurableAgent.ts"
import { codecs, type Codecs } from "./internal/codecs.ts"
import * as Feed from "./internal/eventFeed.ts"
import { answerable } from "./internal/limits.ts"
import type { Push } from "./internal/plan.ts"
import { type ClusterFailure, Decide, makeEntity, type ThreadEntity } from "./internal/protocol.ts"
import { owned, untilThere } from "./internal/retries.ts"
import * as Thread from "./internal/thread.ts"
import type { Outcome } from "./Outcome.ts"
import * as Wait from "./Wait.ts"

/** An agent whose threads are entities. `entity` is what the cluster knows of it. */
export interface AgentEntity<in out O, in out E, out R> {
  readonly name: string
  readonly agent: Agent.Agent<O, E, R>
  readonly codecs: Codecs<O, E>
  readonly entity: ThreadEntity<O, E>
}

/**
 * Makes the entity of an agent. `name` is what stored messages go by, so keep it. An agent with an `output` schema, or
 * with middleware that fails with errors of its own, has to say their schemas (`output`, `error`): outcomes and
 * failures are stored. (Give an agent that has a name: TypeScript infers too little of `Agent.provide(…)` written in
 * here.)
 */
export const make = <O, E, R>(
  options: { readonly name: string; readonly agent: Agent.Agent<O, E, R> } & Terms<O, E>
): AgentEntity<O, E, R> => {
  const known = codecs<O, E>(options)
  return { name: options.name, agent: options.agent, codecs: known, entity: makeEntity(options.name, known) }
}

/**
 * `maxIdleTime` is how long a thread without work stays in memory (default: as the cluster is configured, a minute).
 */
export interface Options {
  readonly maxIdleTime?: Duration.Input | undefined
}

/** The times at which the waits of an outcome are over. */
const waitsOf = (outcome: Outcome<unknown>) =>
  outcome.pending.flatMap((request) => {
    const at = Wait.until(request)
    return at === undefined ? [] : [{ request, at }]
  })

/** Has this process be a runner of the agent's threads. */
export const layer = <O, E, R>(
  { agent, codecs: known, entity }: AgentEntity<O, E, R>,
  options?: Options
): Layer.Layer<never, never, Sharding.Sharding | SessionStore | R> =>
  entity.toLayer(
    Effect.gen(function* () {
      const address = yield* Entity.CurrentAddress
      const sharding = yield* Sharding.Sharding
      const store = yield* SessionStore
      const services = yield* Effect.context<R>()
      const self = yield* entity.client
      const threadId = address.entityId
      const isMine = () => sharding.hasShardId(address.shardId)
      const thread = Thread.make(store, agent, known, threadId, isMine)
      /**
       * Has the thread send itself a decision for when a wait is over. Its id has the step at which it waits, so a
       * wake-up that came to nothing is not the one that comes next. A wait that is not written down would never end.
       */
      const wakeUp = Effect.fnUntraced(function* (outcome: Outcome<unknown>) {
        const waits = waitsOf(outcome)
        if (waits.length === 0) return
        const isAway = ({ _tag }: SessionError | ClusterFailure) =>
          _tag === "PersistenceError" || _tag === "SessionError"
        const { step } = yield* untilThere(store.leaf(threadId), isAway)
        for (const { at, request } of waits) {
          const decide = new Decide({ id: `wait:${request.id}:${step}`, decisions: [approve(request)], at })
          yield* untilThere(self(threadId).Decide(decide, { discard: true }), isAway)
        }
      }, Effect.orDie)
      const answered = answerable(agent.name, threadId, known)
      const turn = (push: Push) =>
        Effect.tap(answered(Effect.provideContext(thread.turn(push), services)), (outcome) =>
          owned(wakeUp(outcome), isMine)
        )
      return entity.of({
        Send: ({ payload }) => turn({ _tag: "Input", message: payload.message }),
        Decide: ({ payload }) => turn({ _tag: "Decisions", decisions: payload.decisions }),
        Steer: ({ payload }) => Rpc.fork(thread.steer(payload.message)),
        Interrupt: () => Rpc.fork(thread.interrupt),
        History: ({ payload: { from, limit } }) =>
          Rpc.fork(
            Effect.map(
              Feed.orNothing(persistent(store.load(threadId, { limit, ...(from === null ? {} : { from }) })), {
                entries: [],
                next: null
              }),
              ({ entries, next }) => ({
                messages: entries.flatMap(({ entry }) => (entry._tag === "Message" ? [entry.message] : [])),
                next
              })
            )
          ),
        Events: ({ payload }) => Rpc.fork(thread.feed.events(payload.after))
      })
    }),
    {
      concurrency: 1,
      // A run that dies is a run that failed: it is not begun again and again.
      disableFatalDefects: true,
      maxIdleTime: options?.maxIdleTime
    }
  )
