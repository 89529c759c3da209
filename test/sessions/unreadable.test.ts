import * as PgClient from "@effect/sql-pg/PgClient"
/**
 * Rows that are there and can't be read: each is told of, and keeps nobody from reading the others.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { Redacted } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { SqlClient } from "effect/sql"
import { onPostgres } from "./children/postgres.ts"
import { aSchema, Postgres } from "./places.ts"

const makeEntry = (id: string, text: string): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(text) }
})

layer(Postgres.layer, { timeout: 60_000, excludeTestServices: true })("Postgres", (it) => {
  it.effect(
    "an entry of more bytes than the client reads stops neither other threads nor search, and its thread can go back",
    Effect.fnUntraced(function* () {
      const place = yield* Effect.orDie(aSchema)
      const sql = yield* Effect.provide(
        SqlClient.SqlClient,
        yield* Layer.build(
          PgClient.layer({ url: Redacted.make(place.url), startupParameters: { search_path: place.name } })
        )
      )
      const logged: Array<string> = []
      const log = Logger.layer([
        Logger.make(({ message }) => {
          logged.push(String(message))
        })
      ])
      yield* Effect.gen(function* () {
        const store = yield* SessionStore.SessionStore
        for (const threadId of ["healthy", "poisoned"]) {
          yield* store.create({ threadId })
          yield* store.append(threadId, { leaf: null, entries: [makeEntry("1", `a word of ${threadId}`)] })
        }
        // As a version without a limit wrote it.
        const body = JSON.stringify(makeEntry("2", "x".repeat(17_000_000)).entry)
        yield* sql`SELECT * FROM session_append(${"poisoned"}::text, ${"1"}::text, 1::bigint,
          ${JSON.stringify([["2", "Message", body]])}::text::jsonb, false, NULL::text, NULL::jsonb)`
        yield* store.append("healthy", { leaf: "1", entries: [makeEntry("3", "another word of it")] })

        const { items } = yield* store.search("word")
        assert.deepStrictEqual(items.map(({ entryId, threadId }) => `${threadId} ${entryId}`).toSorted(), [
          "healthy 1",
          "healthy 3",
          "poisoned 1"
        ])
        assert.deepStrictEqual((yield* store.search("word")).items.length, 3)
        assert.strictEqual((yield* store.search("word", { threadId: "poisoned" })).items.length, 1)
        const told = logged.filter((line) => line.includes("Message 2 of the thread"))
        assert.strictEqual(told.length, 1)
        assert.include(told[0], "poisoned")

        const unread = yield* Effect.flip(store.load("poisoned"))
        assert.strictEqual(unread.reason._tag, "Corrupt")
        assert.include(unread.message, "maxMessageSize")
        assert.strictEqual((yield* store.load("healthy")).entries.length, 2)
        assert.strictEqual((yield* store.list()).items.length, 2)

        yield* store.rewind("poisoned", "1")
        yield* store.append("poisoned", { leaf: "1", entries: [makeEntry("4", "it goes on")] })
        assert.strictEqual((yield* store.load("poisoned")).entries.length, 2)
        yield* store.delete("poisoned")
      }).pipe(
        Effect.provide(onPostgres(place)),
        Effect.provide(log),
        Effect.provideService(References.MinimumLogLevel, "Warn")
      )
    }),
    60_000
  )

  it.effect(
    "words of millions of characters are found by their beginning, and stop no search",
    Effect.fnUntraced(function* () {
      const place = yield* Effect.orDie(aSchema)
      yield* Effect.gen(function* () {
        const store = yield* SessionStore.SessionStore
        yield* store.create({ threadId: "t" })
        const entries = [
          makeEntry("1", "d".repeat(9_000_000)),
          makeEntry("2", "ж".repeat(4_500_000)),
          makeEntry("3", "a word")
        ]
        yield* store.append("t", { leaf: null, entries })
        assert.strictEqual((yield* store.search("word")).items.length, 1)
        assert.strictEqual((yield* store.search("ddd")).items[0]?.entryId, "1")
        assert.deepStrictEqual((yield* store.search("e".repeat(9_000_000))).items, [])
      }).pipe(Effect.provide(onPostgres(place)))
    }),
    60_000
  )
})
