/**
 * A search of an SQLite file stops nobody else, however much it goes through.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { SqlClient } from "effect/sql"
import { sqlite } from "../places.ts"

const makeEntry = (id: string): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(`a question number ${id} about a thing`) }
})

const filled = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  yield* store.create({ threadId: "t" })
  const entries = Array.from({ length: 2_000 }, (_, n) => makeEntry(`e${String(n).padStart(5, "0")}`))
  yield* store.append("t", { leaf: null, entries })
  yield* store.search("nothing yet")
  return store
})

const on = <A, E>(body: Effect.Effect<A, E, SessionStore.SessionStore | SqlClient.SqlClient>) =>
  Effect.gen(function* () {
    const file = yield* sqlite.place
    return yield* Effect.provide(body, SqlSessions.layer.pipe(Layer.provideMerge(SqliteClient.layer({ file }))))
  })

describe("a search of an SQLite file", () => {
  it.effect("lets others run while it is under way", () =>
    on(
      Effect.gen(function* () {
        const store = yield* filled
        let turns = 0
        const others = yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.sync(() => turns++),
              Effect.yieldNow
            )
          )
        )
        let seen = 0
        for (const text of ["a", "a ".repeat(50_000), "question thing about number"]) {
          for (let n = 0; n < 8; n++) {
            yield* Effect.yieldNow
            turns = 0
            assert.strictEqual((yield* store.search(text)).items.length, 20)
            seen += turns
          }
        }
        // In the thread of the process, nobody would have one.
        assert.isAbove(seen, 0)
        yield* Fiber.interrupt(others)
      })
    )
  )

  it.live("can be interrupted: the others, and the next one, have their answers", () =>
    on(
      Effect.gen(function* () {
        const store = yield* filled
        for (let n = 0; n < 5; n++) {
          const [first, second] = [
            yield* Effect.forkChild(store.search("a thing")),
            yield* Effect.forkChild(store.search("question"))
          ]
          yield* Effect.yieldNow
          yield* Fiber.interrupt(first)
          assert.strictEqual((yield* Fiber.join(second)).items.length, 20)
        }
        assert.strictEqual((yield* store.search("a")).items.length, 20)
      })
    )
  )

  it.effect("sees what its own transaction wrote", () =>
    on(
      Effect.gen(function* () {
        const store = yield* filled
        const sql = yield* SqlClient.SqlClient
        const { id } = yield* store.leaf("t")
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* store.append("t", { leaf: id, entries: [{ ...makeEntry("f"), id: "f1" }] })
            assert.strictEqual((yield* store.search("number f")).items[0]?.entryId, "f1")
          })
        )
      })
    )
  )
})
