/**
 * A thread of which an entry was lost is told of: no run goes on with the rest as if that were all.
 */
import { readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { Message, type SessionError } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { Redis } from "effect/persistence"
import { SqlClient } from "effect/sql"
import { makeJournal } from "../../src/sessions/journal.ts"
import { hasRedis } from "../servers/redis.ts"
import * as places from "./places.ts"

const makeEntry = (id: string): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(id) }
})

const open = (sessions: Layer.Layer<SessionStore.SessionStore, unknown>) =>
  Effect.map(Layer.build(Layer.fresh(Layer.orDie(sessions))), (context) =>
    Effect.runSync(Effect.provide(SessionStore.SessionStore, context))
  )

/** Three messages, and an import of them. */
const fill = Effect.fnUntraced(function* (store: SessionStore.Service) {
  yield* store.create({ threadId: "t" })
  yield* store.append("t", { leaf: null, entries: [makeEntry("e1"), makeEntry("e2"), makeEntry("e3")] })
  yield* store.import(store.export("t"), { threadId: "copy" })
})

/** Loads and opens a damaged thread; each must say so. */
const isTold = Effect.fnUntraced(function* (store: SessionStore.Service, threadId: string) {
  for (const reading of [store.load(threadId), makeJournal(store).open(threadId)]) {
    const { reason } = yield* Effect.flip<unknown, SessionError.SessionError, never>(reading)
    assert.strictEqual(reason._tag, "Corrupt")
  }
})

describe("a thread that lost an entry", () => {
  it.effect("is told of in an SQLite file", () =>
    Effect.gen(function* () {
      const file = yield* places.sqlite.place
      yield* Effect.scoped(Effect.flatMap(open(places.sqlite.layer(file)), fill))
      const database = new DatabaseSync(file)
      database.exec("DELETE FROM session_entries WHERE id = 'e2'")
      database.close()
      const store = yield* open(places.sqlite.layer(file))
      yield* isTold(store, "t")
      yield* isTold(store, "copy")
    })
  )

  for (const [what, from, to] of [
    ["the parent of an entry", '"parentId":"e1"', '"parentId":"e9"'],
    ["the id of an entry", '"id":"e2"', '"id":"e9"'],
    ["an id that is another's", '"id":"e2"', '"id":"e1"'],
    ["the leaf", '"leaf":"e3"', '"leaf":"e9"']
  ] as const) {
    it.effect(`is told of in JSON lines, where ${what} was damaged`, () =>
      Effect.gen(function* () {
        const place = yield* places.jsonl.place
        yield* Effect.scoped(Effect.flatMap(open(places.jsonl.layer(place)), fill))
        const [name = ""] = readdirSync(place.folder).filter((file) => file.startsWith("copy"))
        const file = join(place.folder, name)
        const text = readFileSync(file, "utf8")
        writeFileSync(file, text.replace(from, to))
        const store = yield* open(places.jsonl.layer(place))
        yield* isTold(store, "copy")
        assert.strictEqual((yield* store.load("t")).entries.length, 3)
        writeFileSync(file, text)
        const again = yield* open(places.jsonl.layer(place))
        assert.strictEqual((yield* Stream.runCollect(again.export("copy"))).length, 4)
      })
    )
  }

  it.effect(
    "is told of in JSON lines, where another program emptied the file; a file that never had a record is new",
    () =>
      Effect.gen(function* () {
        const place = yield* places.jsonl.place
        const store = yield* open(places.jsonl.layer(place))
        yield* fill(store)
        const [name = ""] = readdirSync(place.folder).filter((file) => file.startsWith("t."))
        const file = join(place.folder, name)
        const text = readFileSync(file, "utf8")
        writeFileSync(file, "")
        // Some time after the thread was made.
        utimesSync(file, new Date(), new Date(statSync(file).birthtimeMs + 60_000))
        const fresh = yield* open(places.jsonl.layer(place))
        for (const one of [store, fresh]) {
          yield* isTold(one, "t")
          const { reason } = yield* Effect.flip(one.create({ threadId: "t" }))
          assert.strictEqual(reason._tag, "Corrupt")
          assert.include(JSON.stringify(reason), "remove the file to begin the thread anew")
          assert.strictEqual((yield* one.load("copy")).entries.length, 3)
        }
        assert.strictEqual(readFileSync(file, "utf8"), "")
        writeFileSync(file, text)
        for (const one of [store, fresh]) assert.strictEqual((yield* one.load("t")).entries.length, 3)
        // A process that ended between the name and the first record.
        rmSync(file)
        writeFileSync(file, "")
        for (const one of [store, fresh]) {
          const { reason } = yield* Effect.flip(one.load("t"))
          assert.strictEqual(reason._tag, "NotFound")
        }
        yield* fresh.create({ threadId: "t" })
        yield* store.append("t", { leaf: null, entries: [makeEntry("e1")] })
        assert.strictEqual((yield* fresh.load("t")).entries.length, 1)
      })
  )

  it.effect("is told of in JSON lines, where the entry was damaged that it was forked at", () =>
    Effect.gen(function* () {
      const place = yield* places.jsonl.place
      yield* Effect.scoped(
        Effect.flatMap(open(places.jsonl.layer(place)), (store) =>
          Effect.andThen(fill(store), store.fork("t", { threadId: "fork", at: "e2" }))
        )
      )
      const [name = ""] = readdirSync(place.folder).filter((file) => file.startsWith("fork"))
      const file = join(place.folder, name)
      writeFileSync(file, readFileSync(file, "utf8").replace('"entryId":"e2"', '"entryId":"e9"'))
      yield* isTold(yield* open(places.jsonl.layer(place)), "fork")
    })
  )
})

layer(places.Postgres.layer, { timeout: 60_000 })("a thread that lost an entry", (it) => {
  it.effect("is told of in Postgres", () =>
    Effect.gen(function* () {
      const at = yield* places.postgres.place
      const store = yield* open(places.postgres.layer(at))
      yield* fill(store)
      yield* SqlClient.SqlClient.use((sql) => sql`DELETE FROM session_entries WHERE id = 'e2'`).pipe(
        Effect.provide(PgClient.layer({ url: Redacted.make(at.url), startupParameters: { search_path: at.name } }))
      )
      const fresh = yield* open(places.postgres.layer(at))
      yield* isTold(fresh, "t")
      yield* isTold(fresh, "copy")
    })
  )
})

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(places.RedisServer.layer, { timeout: 60_000 })("a thread that lost an entry", (it) => {
    it.effect("is told of in Redis", () =>
      Effect.gen(function* () {
        const at = yield* places.redis.place
        yield* Effect.scoped(Effect.flatMap(open(places.redis.layer(at)), fill))
        yield* Redis.Redis.use((server) =>
          Effect.all([server.send("HDEL", `${at.name}e:1`, "1"), server.send("HDEL", `${at.name}e:2`, "1")])
        ).pipe(Effect.provide(NodeRedis.layer({ url: at.url })))
        const store = yield* open(places.redis.layer(at))
        yield* isTold(store, "t")
        yield* isTold(store, "copy")
      })
    )
  })
})
