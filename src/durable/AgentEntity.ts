/**
 * Agents spread over machines: each thread is an entity of the cluster, with one writer at a time.
 *
 * The cluster stores inputs and decisions, and processes them in order. After a runner dies, another one resumes its
 * threads and processes the pending messages. An idle thread leaves the memory. An input, a decision or a timer wakes it.
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
import { check, makeLayerCheck } from "../support/options/check.ts"
import { codecs, type Codecs, type Terms } from "./internal/codecs.ts"
import * as Feed from "./internal/eventFeed.ts"
import { boundAnswer } from "./internal/limits.ts"
import type { Push } from "./internal/plan.ts"
import { type ClusterFailure, Decide, makeEntity, type ThreadEntity } from "./internal/protocol.ts"
import { readTerms } from "./internal/readTerms.ts"
import { retryUnavailable, whileOwned } from "./internal/retries.ts"
import * as shapes from "./internal/shapes.ts"
import * as Thread from "./internal/thread.ts"
import type { Outcome } from "./Outcome.ts"
import * as Wait from "./Wait.ts"

/** An agent whose threads are entities. */
export interface AgentEntity<in out O, in out E, out R> {
  readonly name: string
  readonly agent: Agent.Agent<O, E, R>
  readonly codecs: Codecs<O, E>
  readonly entity: ThreadEntity<O, E>
}

const checkMake = check(shapes.agentEntityMake)

/**
 * Makes the entity of an agent. Stored messages refer to `name`, so keep it. Outcomes and failures are stored: an agent with
 * an `output` schema, or with errors of its own, needs their schemas (`output`, `error`). Assign `Agent.provide(…)` to a
 * constant first, because TypeScript infers too little of it inline.
 */
export const make = <O, E, R>(
  options: {
    /** The name that stored messages refer to: keep it. */
    readonly name: string
    /** The agent. Give an agent that has a name: TypeScript infers too little of `Agent.provide(…)` written here. */
    /** The agent. Give an agent that has a name: TypeScript infers too little of `Agent.provide(…)` written here. */
    readonly agent: Agent.Agent<O, E, R>
  } & Terms<O, E>
): AgentEntity<O, E, R> => {
  const terms = readTerms(checkMake, options)
  const agentCodecs = codecs<O, E>(terms)
  return { name: terms.name, agent: terms.agent, codecs: agentCodecs, entity: makeEntity(terms.name, agentCodecs) }
}

/** Finds the waits of an outcome, and their ends. */
const waitsOf = (outcome: Outcome<unknown>) =>
  outcome.pending.flatMap((request) => {
    const at = Wait.until(request)
    return at === undefined ? [] : [{ request, at }]
  })

const refuseLayer = makeLayerCheck("AgentEntity.layer", shapes.agentEntityLayer)

/** Makes this process a runner of the agent's threads. */
export const layer = <O, E, R>(
  { agent, codecs: agentCodecs, entity }: AgentEntity<O, E, R>,
  options?: {
    /** The time that an idle thread stays in memory (default: from the configuration of the cluster, a minute). */
    readonly maxIdleTime?: Duration.Input | undefined
  }
): Layer.Layer<never, never, Sharding.Sharding | SessionStore | R> =>
  refuseLayer(options) ??
  entity.toLayer(
    Effect.gen(function* () {
      const address = yield* Entity.CurrentAddress
      const sharding = yield* Sharding.Sharding
      const store = yield* SessionStore
      const services = yield* Effect.context<R>()
      const self = yield* entity.client
      const threadId = address.entityId
      const isMine = () => sharding.hasShardId(address.shardId)
      const thread = Thread.make(store, agent, agentCodecs, threadId, isMine)
      /**
       * Sends a decision to this thread, with the end of a wait as its time of delivery. The step in its id distinguishes it
       * from earlier wake-ups. It retries until the message is stored, because the wait would never end otherwise.
       */
      const wakeUp = Effect.fnUntraced(function* (outcome: Outcome<unknown>) {
        const waits = waitsOf(outcome)
        if (waits.length === 0) return
        const isAway = ({ _tag }: SessionError | ClusterFailure) =>
          _tag === "PersistenceError" || _tag === "SessionError"
        const { step } = yield* retryUnavailable(store.leaf(threadId), isAway)
        for (const { at, request } of waits) {
          const decide = new Decide({ id: `wait:${request.id}:${step}`, decisions: [approve(request)], at })
          yield* retryUnavailable(self(threadId).Decide(decide, { discard: true }), isAway)
        }
      }, Effect.orDie)
      const answered = boundAnswer(agent.name, threadId, agentCodecs)
      const turn = (push: Push) =>
        Effect.tap(answered(Effect.provideContext(thread.turn(push), services)), (outcome) =>
          whileOwned(wakeUp(outcome), isMine)
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
      // A defect fails its input, and does not restart the entity.
      disableFatalDefects: true,
      maxIdleTime: options?.maxIdleTime
    }
  )
