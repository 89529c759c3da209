import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as RedisSessions from "effect-deepagents/sessions/RedisSessions"
import { Redis } from "effect/persistence"
import { TestClock } from "effect/testing"

/** A client that keeps commands for a server which never comes back. */
const waiting = Layer.effect(
  Redis.Redis,
  Redis.make({ send: () => Effect.never, subscribe: () => Effect.never, connect: Effect.never })
)

describe("a Redis that does not answer", () => {
  it.effect(
    "fails an append, typed, after 20 seconds",
    Effect.fnUntraced(function* () {
      const entry = { _tag: "Message", message: Message.human("hello") } as const
      const append = SessionStore.SessionStore.use((store) =>
        store.append("t", { leaf: null, entries: [{ id: "1", entry }] })
      )
      const asked = Effect.provide(append, Layer.provide(RedisSessions.layer(), waiting))
      const failing = yield* Effect.forkChild(Effect.flip(asked), { startImmediately: true })
      yield* TestClock.adjust("20 seconds")
      const { reason } = yield* Fiber.join(failing)
      assert.strictEqual(reason._tag, "Unavailable")
      assert.include(reason._tag === "Unavailable" ? reason.problem : "", "did not answer within 20 seconds")
    })
  )
})
