/** The side of the process that has a thread: its mail, its runs and its log. */
import * as Entity from "effect/cluster/Entity"
import * as Sharding from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { SessionStore } from "../../../core/SessionStore.ts"
import { retryUnavailable } from "../../../durable/planning.ts"
import { defined } from "../../../support/json/defined.ts"
import * as Log from "../log.ts"
import type { Owner } from "../owner.ts"
import { makeRegistry, serviceOf, type Settings } from "../runs.ts"
import { type Acceptance, RunsError } from "../service.ts"
import { openThread } from "../taking.ts"
import { type Principal, tenant, type ThreadRef } from "../tenant.ts"
import { isBusy, type Registry, reread, resume, workOf } from "../works.ts"
import { ThreadEntity } from "./protocol.ts"

interface Name {
  readonly principal: Principal
  readonly id: string
}

/** Waits until all mail of a thread is settled. */
const awaitIdle = (registry: Registry, baseId: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const work = workOf(registry, baseId)
    return isBusy(work) ? Effect.andThen(Log.nextChange(work.log), awaitIdle(registry, baseId)) : Effect.void
  })

/** The threads of this process. */
export const layer = (settings: Settings): Layer.Layer<never, never, Sharding.Sharding | SessionStore> =>
  ThreadEntity.toLayer(
    Effect.gen(function* () {
      const { entityId, shardId } = yield* Entity.CurrentAddress
      const sharding = yield* Sharding.Sharding
      const store = yield* SessionStore
      const self = (yield* ThreadEntity.client)(entityId)
      const isOwn = Effect.sync(() => sharding.hasShardId(shardId))
      const refuse: Owner["refuse"] = (threadId) =>
        Effect.succeed(
          new RunsError({
            reason: "Unavailable",
            threadId,
            problem: "the thread moves to another process; try again",
            retryAfter: 1
          })
        )
      const registry = yield* makeRegistry(settings, { isOwn, confirm: isOwn, refuse })
      const runs = serviceOf(registry)
      const inOrder = (yield* Semaphore.make(1)).withPermits(1)
      let isOpen = false
      const open = (baseId: string) =>
        Effect.gen(function* () {
          yield* resume(registry, yield* settings.mailbox.of(baseId))
          isOpen = true
        })
      /** Gives the thread, when the mail that an earlier owner left is in its queue. */
      const on = Effect.fnUntraced(function* ({ id, principal }: Name) {
        const { thread } = yield* Effect.provideService(tenant(principal), SessionStore, store)
        const ref = yield* thread(id)
        const { baseId } = yield* openThread(ref)
        yield* inOrder(Effect.suspend(() => (isOpen ? Effect.void : open(baseId))))
        return { ref, baseId }
      })
      const take = Effect.fnUntraced(function* <E>(
        name: Name,
        taking: (ref: ThreadRef) => Effect.Effect<Acceptance, E>
      ) {
        const { baseId, ref } = yield* on(name)
        const receipt = yield* inOrder(taking(ref))
        // From here on, the cluster wakes the next owner of the thread if this one ends.
        if (receipt.isNew) yield* Effect.mapError(self.Work({ baseId }, { discard: true }), () => unavailable(name))
        return receipt
      })
      return ThreadEntity.of({
        Start: ({ payload }) => take(payload, (ref) => runs.start(ref, payload.input)),
        Decide: ({ payload }) => take(payload, (ref) => runs.decide(ref, payload.decisions)),
        Steer: ({ payload }) => Effect.flatMap(on(payload), ({ ref }) => runs.steer(ref, payload.input)),
        Cancel: ({ payload }) => Effect.flatMap(on(payload), ({ ref }) => runs.cancel(ref)),
        State: ({ payload }) => Effect.flatMap(on(payload), ({ ref }) => runs.state(ref)),
        Status: ({ payload }) => Effect.flatMap(on(payload), ({ ref }) => runs.status(ref)),
        Observe: ({ payload: { after, follow, ...name } }) =>
          Stream.concat(
            Stream.succeed({ _tag: "Begin" } as const),
            Stream.unwrap(Effect.map(on(name), ({ ref }) => runs.observe(ref, { follow, ...defined({ after }) })))
          ),
        Reread: ({ payload }) => Effect.sync(() => reread(registry, payload.baseId)),
        Work: ({ payload: { baseId } }) =>
          Effect.andThen(
            Effect.orDie(retryUnavailable(inOrder(Effect.suspend(() => open(baseId))), () => true)),
            awaitIdle(registry, baseId)
          )
      })
    }),
    // A defect fails its request, and does not end the runs of the thread.
    { concurrency: "unbounded", disableFatalDefects: true }
  )

const unavailable = ({ id }: Name): RunsError =>
  new RunsError({
    reason: "Unavailable",
    threadId: id,
    problem: "the storage of the cluster can't be reached; try again later"
  })
