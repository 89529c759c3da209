/** The inbox of a cluster: its threads are on a runner, pending requests are in Postgres, and decisions go to the entities. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Schedule } from "effect"
import { Approval } from "effect-deepagents"
import { AgentClient } from "effect-deepagents/durable"
import { Inbox, Notify } from "effect-deepagents/rules"
import { did, guard } from "../durable/children/agents.ts"
import { cluster } from "../durable/children/cluster.ts"
import { folder, runner } from "../durable/places.ts"
import { postgres } from "../servers/postgres.ts"

class Url extends Context.Service<Url, string>()("test/Url") {}

const Place = Layer.unwrap(Effect.map(postgres, (url) => Layer.merge(Layer.succeed(Url, url), cluster(url))))

const ada = { id: "ada" }
const eve = { id: "eve" }

layer(Place, { timeout: 60_000, excludeTestServices: true })("the inbox of a cluster", (it) => {
  it.effect(
    "lists what its threads wait for, has one take each, and has the runner go on with what is decided",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      yield* runner(yield* Url, path)
      const entity = guard(path)
      const one = Inbox.layer({
        deliver: (threadId, decisions) =>
          Effect.flatMap(AgentClient.of(entity, threadId), ({ decide }) => decide(decisions))
      })
      // Like another process: all its knowledge is in the store.
      const other = yield* Effect.provideContext(Inbox.Inbox, yield* Layer.build(Layer.fresh(one)))
      yield* Effect.gen(function* () {
        const { claim, decide, expire, list, notify } = yield* Inbox.Inbox
        const said = ["ship a", "ship b", "ship c", "wait d"].map((input, index) =>
          Effect.flatMap(AgentClient.of(entity, `t${index}`), ({ send }) => send(input, { id: "1" }))
        )
        for (const { stopReason } of yield* Effect.all(said, { concurrency: "unbounded" })) {
          assert.strictEqual(stopReason, "suspended")
        }
        const items = yield* list()
        assert.sameMembers(
          items.map(({ threadId }) => threadId),
          ["t0", "t1", "t2"]
        )
        const told: Array<string> = []
        const counting = Layer.succeed(Notify.Notify, { send: ({ id }) => Effect.sync(() => void told.push(id)) })
        yield* Effect.provide(Effect.all([notify, other.notify], { concurrency: "unbounded" }), counting)
        assert.deepStrictEqual(told.toSorted(), items.map(({ id }) => id).toSorted())

        const first = items.find(({ threadId }) => threadId === "t0")
        const second = items.find(({ threadId }) => threadId === "t1")
        assert(first !== undefined && second !== undefined)
        const claims = [claim(first.id, { by: ada }), other.claim(first.id, { by: eve })].map(Effect.exit)
        const [mine, theirs] = yield* Effect.all(claims, { concurrency: "unbounded" })
        assert(mine !== undefined && theirs !== undefined)
        assert.notStrictEqual(Exit.isSuccess(mine), Exit.isSuccess(theirs))
        const [winner, loser] = Exit.isSuccess(mine) ? [ada, eve] : [eve, ada]
        const late = yield* Effect.flip(other.decide([Approval.approve(first.request)], { by: loser }))
        assert.deepInclude(late.reason, { _tag: "Claimed", by: winner.id })
        yield* decide([Approval.approve(first.request)], { by: winner })
        assert.deepStrictEqual(
          did(path).map(({ what }) => what),
          ["ship a", "ship-end a"]
        )

        // Of two who decide on one at once, both are told, and it is done once.
        yield* Effect.all(
          [
            decide([Approval.approve(second.request)], { by: ada }),
            other.decide([Approval.approve(second.request)], { by: eve })
          ].map(Effect.exit),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(did(path).filter(({ what }) => what === "ship b").length, 1)

        const gone = yield* expire({ after: 0 })
        assert.deepStrictEqual(
          gone.map(({ threadId }) => threadId),
          ["t2"]
        )
        assert.deepStrictEqual(yield* other.list(), [])
        assert.isFalse(did(path).some(({ what }) => what === "ship c"))
        // A thread that waits for a time was left alone.
        const waiting = yield* AgentClient.of(entity, "t3")
        const history = yield* Effect.repeat(waiting.history, {
          schedule: Schedule.spaced("100 millis"),
          until: (messages) => messages.length === 4
        })
        assert.deepStrictEqual(
          history.map(({ role }) => role),
          ["human", "ai", "tool", "ai"]
        )
      }).pipe(Effect.provide(one))
    }, Effect.scoped),
    60_000
  )
})
