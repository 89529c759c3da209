/** The service of runs in every process of a cluster: it asks the process that has the thread. */
import * as Sharding from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { makeId } from "../../../core/Message.ts"
import { SessionError } from "../../../core/SessionError.ts"
import { retryCut, retryUnavailable, uncutStream } from "../../../durable/planning.ts"
import { defined } from "../../../support/json/defined.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import type { Frame } from "../position.ts"
import { listAgents, type Settings } from "../runs.ts"
import { onMove } from "../scope.ts"
import { type Runs, RunsError } from "../service.ts"
import { openThread } from "../taking.ts"
import type { ThreadRef } from "../tenant.ts"
import { ThreadEntity } from "./protocol.ts"

/** Names the entity of a thread. The ids of threads are too long for entities. */
const entityOf = (baseId: string): string => sha256Sync(baseId)

/** Keeps failures of the thread, and gives failures of the cluster a reason that clients know. */
const toFailure =
  ({ id }: ThreadRef) =>
  (failure: { readonly _tag: string }): RunsError | SessionError =>
    failure instanceof RunsError || failure instanceof SessionError
      ? failure
      : new RunsError({
          reason: "Unavailable",
          threadId: id,
          problem: "the process that has the thread can't be reached; try again",
          retryAfter: 1
        })

/** A thread that moves has another owner within seconds. A refused request had no effect. */
const moving = {
  schedule: Schedule.spaced("250 millis"),
  times: 40,
  while: (failure: RunsError | SessionError) =>
    failure._tag === "RunsError" && failure.reason === "Unavailable" && failure.retryAfter !== undefined
}

/** Makes the service. Mail that is stored and that nobody works on is given to the owners of its threads. */
export const make = Effect.fnUntraced(function* ({
  agents,
  base,
  mailbox,
  models,
  modes,
  thinking
}: Settings): Effect.fn.Return<Runs["Service"], never, Sharding.Sharding | Scope.Scope> {
  const client = yield* ThreadEntity.client
  const { isShutdown } = yield* Sharding.Sharding
  const wake = Effect.flatMap(mailbox.all, (mails) =>
    Effect.forEach(
      new Set(mails.map(({ threadId }) => threadId)),
      (baseId) => client(entityOf(baseId)).Work({ baseId }, { discard: true }),
      { discard: true }
    )
  )
  yield* Effect.forkScoped(retryUnavailable(wake, () => true))
  const moved = yield* Queue.unbounded<string>()
  yield* onMove(base, (baseId) => Queue.offerUnsafe(moved, baseId))
  const tellMove = Effect.flatMap(Queue.take(moved), (baseId) =>
    Effect.ignore(retryCut(client(entityOf(baseId)).Reread({ baseId }), isShutdown))
  )
  yield* Effect.forkScoped(Effect.forever(tellMove))

  type Client = ReturnType<typeof client>
  interface Name {
    readonly principal: ThreadRef["principal"]
    readonly id: string
  }
  const ask = <A, E extends { readonly _tag: string }>(
    thread: ThreadRef,
    question: (client: Client, name: Name) => Effect.Effect<A, E>
  ): Effect.Effect<A, RunsError | SessionError> =>
    Effect.flatMap(openThread(thread), ({ baseId }) => {
      const { id, principal } = thread
      const answer = retryCut(question(client(entityOf(baseId)), { id, principal }), isShutdown)
      return Effect.retry(Effect.mapError(answer, toFailure(thread)), moving)
    })
  /** Failures of the store come by operations that read it only. */
  const withoutStore = <A>(effect: Effect.Effect<A, RunsError | SessionError>): Effect.Effect<A, RunsError> =>
    Effect.catchTag(effect, "SessionError", Effect.die)

  return {
    agents: listAgents(agents),
    models: Object.keys(models),
    modes,
    thinking,
    start: (thread, { agent, busy, call, id = makeId(), input, mode, model, thinking }) =>
      ask(thread, (to, name) =>
        to.Start({ ...name, input: { agent, input, id, ...defined({ busy, call, mode, model, thinking }) } })
      ),
    decide: (thread, decisions) => ask(thread, (to, name) => to.Decide({ ...name, decisions })),
    steer: (thread, input) => withoutStore(ask(thread, (to, name) => to.Steer({ ...name, input }))),
    cancel: (thread) => withoutStore(ask(thread, (to, name) => to.Cancel(name))),
    state: (thread) => ask(thread, (to, name) => to.State(name)),
    status: (thread) => ask(thread, (to, name) => to.Status(name)),
    observe: (thread, options) =>
      Stream.unwrap(
        Effect.map(openThread(thread), ({ baseId }) => {
          const { id, principal } = thread
          const { follow = false } = options ?? {}
          let last = options?.after
          const to = client(entityOf(baseId))
          const frames = Stream.suspend(() => {
            let isBegun = false
            const counted = Stream.mapArrayEffect(
              to.Observe({ id, principal, follow, ...defined({ after: last }) }),
              Effect.fnUntraced(function* (some) {
                for (const frame of some) {
                  // It would tell all again: another request asks for the frames behind the last one.
                  if (frame._tag === "Begin" && isBegun) return yield* Effect.interrupt
                  if (frame._tag === "Begin") isBegun = true
                  else last = frame.position
                }
                return some
              })
            )
            return Stream.filter(counted, (frame): frame is Frame => frame._tag !== "Begin")
          })
          return Stream.mapError(uncutStream(frames, isShutdown), toFailure(thread))
        })
      )
  }
})
