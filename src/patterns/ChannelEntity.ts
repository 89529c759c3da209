/**
 * Mailboxes on a cluster: each is an entity, so that one runner at a time reads and writes it. Processes that only send
 * and read need no storage of their own.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Channel } from "effect-deepagents/patterns"
 * import * as ChannelEntity from "effect-deepagents/patterns/ChannelEntity"
 * import { Storage } from "effect-deepagents/stores"
 * import { TestRunner } from "effect/cluster"
 *
 * // A runner of mailboxes; give it a storage that all runners share.
 * const runner = ChannelEntity.layer.pipe(Layer.provide(Channel.layer()), Layer.provide(Storage.layerMemory))
 *
 * const program = Effect.gen(function* () {
 *   const channel = yield* Channel.Channel
 *   yield* channel.send({ from: "scout", to: "base", body: "all is quiet" })
 * }).pipe(Effect.provide([ChannelEntity.layerClient, runner]), Effect.provide(TestRunner.layer))
 * ```
 */
import * as Cause from "effect/Cause"
import * as Entity from "effect/cluster/Entity"
import type * as Sharding from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Rpc from "effect/rpc/Rpc"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Json } from "../core/Json.ts"
import { makeId } from "../core/Message.ts"
import { defined } from "../support/json/defined.ts"
import { Channel, ChannelError, Envelope, Wake } from "./Channel.ts"

const error = ChannelError

/** The messages of a mailbox. All may be repeated: a message is sent with a key. */
const entity = Entity.make("effect-deepagents/Channel", [
  Rpc.make("Send", {
    payload: { from: Schema.String, body: Json, key: Schema.String, wake: Schema.optionalKey(Wake) },
    success: Envelope,
    error
  }),
  Rpc.make("Receive", { payload: { most: Schema.Finite }, success: Schema.Array(Envelope), error }),
  Rpc.make("Acknowledge", { payload: { ids: Schema.Array(Schema.String) }, error }),
  Rpc.make("Pending", { success: Schema.Finite, error }),
  Rpc.make("Hold", { payload: { by: Schema.String }, success: Schema.Boolean, error }),
  Rpc.make("Release", { payload: { by: Schema.String }, error }),
  Rpc.make("History", { success: Envelope, error, stream: true })
])

/** Makes this process a runner of mailboxes, which it keeps in the `Channel` of its context. */
export const layer: Layer.Layer<never, never, Sharding.Sharding | Channel> = entity.toLayer(
  Effect.gen(function* () {
    const { entityId: to } = yield* Entity.CurrentAddress
    const channel = yield* Channel
    return entity.of({
      Send: ({ payload }) => channel.send({ ...payload, to }),
      Receive: ({ payload }) => channel.receive(to, payload),
      Acknowledge: ({ payload }) => channel.acknowledge(to, payload.ids),
      Pending: () => channel.pending(to),
      Hold: ({ payload }) => channel.hold(to, payload.by),
      Release: ({ payload }) => channel.release(to, payload.by),
      History: () => Rpc.fork(channel.history(to))
    })
  }),
  // A defect fails its operation, and does not restart the mailbox.
  { disableFatalDefects: true }
)

/** Five seconds: by then a mailbox of a runner that ended is with another one. */
const briefly = Schedule.spaced("250 millis").pipe(Schedule.upTo({ times: 20 }))

/**
 * The mailboxes of the cluster, for a process that may run none of them. An operation on a mailbox that moves to another
 * runner is repeated. A message is sent once.
 */
export const layerClient: Layer.Layer<Channel, never, Sharding.Sharding> = Layer.effect(
  Channel,
  Effect.map(entity.client, (mailboxOf) => {
    const toUnavailable = (operation: string, to: string, problem: string) =>
      new ChannelError({ operation, to, reason: { _tag: "Unavailable", problem } })
    const failing = (operation: string, to: string) => (failure: ChannelError | { readonly _tag: string }) =>
      failure instanceof ChannelError ? failure : toUnavailable(operation, to, `the cluster says ${failure._tag}`)
    const moved = (operation: string, to: string) => toUnavailable(operation, to, "it moves to another runner")
    const repeating =
      (operation: string, to: string) =>
      <A>(work: Effect.Effect<A, ChannelError | { readonly _tag: string }>): Effect.Effect<A, ChannelError> =>
        Effect.mapError(work, failing(operation, to)).pipe(
          Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail(moved(operation, to))),
          Effect.retry({ schedule: briefly, while: ({ reason }) => reason._tag === "Unavailable" })
        )
    return {
      send: ({ body, from, key = makeId(), to, wake }) =>
        repeating("send", to)(mailboxOf(to).Send(defined({ from, body, key, wake }))),
      receive: (to, { most = 100 } = {}) => repeating("receive", to)(mailboxOf(to).Receive({ most })),
      acknowledge: (to, ids) => repeating("acknowledge", to)(mailboxOf(to).Acknowledge({ ids })),
      pending: (to) => repeating("pending", to)(mailboxOf(to).Pending()),
      hold: (to, by) => repeating("hold", to)(mailboxOf(to).Hold({ by })),
      release: (to, by) => repeating("release", to)(mailboxOf(to).Release({ by })),
      history: (to) =>
        Stream.mapError(mailboxOf(to).History(), failing("history", to)).pipe(
          Stream.catchCauseIf(Cause.hasInterruptsOnly, () => Stream.fail(moved("history", to)))
        )
    }
  })
)
