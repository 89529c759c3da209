/**
 * A copy of a store has all that the source had, and the source takes no changes any more.
 */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result, Schema, type Scope, Stream } from "effect"
import { Agent, Approval, Message, type SessionError, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Inbox } from "effect-deepagents/rules"
import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { bundle } from "../bundle.ts"
import { isFull, scaled } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import { layer as storeOf } from "./children/stores.ts"
import { folder, foreignSqlite, memory, postgres, Postgres, redis, RedisServer, sqlite } from "./places.ts"

type Store = SessionStore.Service

/** Builds a store that lives as long as the test. */
const built = <E>(sessions: Layer.Layer<SessionStore.SessionStore, E>) =>
  Effect.map(Layer.build(Layer.fresh(Layer.orDie(sessions))), (services) =>
    Context.get(services, SessionStore.SessionStore)
  )

const jsonlIn = (path: string) => JsonlSessions.layer({ folder: path }).pipe(Layer.provide(NodeServices.layer))

/** A new, empty store of each kind. */
const stores = {
  memory: built(memory.layer()),
  jsonl: Effect.flatMap(folder, (path) => built(jsonlIn(path))),
  sqlite: Effect.flatMap(sqlite.place, (file) => built(sqlite.layer(file))),
  "a foreign client of sqlite": Effect.flatMap(foreignSqlite.place, (file) => built(foreignSqlite.layer(file)))
}

const makeEntry = (id: string, text = id): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(text) }
})

const third = makeEntry("3", "three")

const paid: Array<number> = []
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.sync(() => (paid.push(amount), `paid ${amount}`))
})
const clerk = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const model = TestChatModel.reactive(({ messages }) =>
  messages.at(-1)?.role === "tool" ? "done" : TestChatModel.calls([{ name: "pay", arguments: { amount: 7 } }])
)

/** Runs, and the inbox, on a store. */
const workingOn = (store: Store) => {
  const sessions = SessionStore.journal.pipe(Layer.provideMerge(Layer.succeed(SessionStore.SessionStore, store)))
  return Inbox.layer({ deliver: Inbox.toAgents([clerk]) }).pipe(Layer.provideMerge(Layer.merge(sessions, model)))
}

const ada: Approval.Principal = { id: "ada" }

/** Threads of each kind: plain, labelled, branched, archived, forked, with metadata, empty, and waiting. */
const fill = Effect.fnUntraced(function* (store: Store) {
  yield* TestClock.setTime(1_000)
  yield* store.create({ threadId: "plain", metadata: { title: "Ada's", n: [1, { a: null }] } })
  yield* store.append("plain", { leaf: null, entries: [makeEntry("1", "one"), makeEntry("2", "two")] })
  yield* TestClock.adjust("1 minute")
  yield* store.rewind("plain", "1")
  yield* store.append("plain", { leaf: "1", entries: [third] })
  yield* store.label("plain", "fork here", "2")
  yield* TestClock.adjust("1 minute")
  yield* store.fork("plain", { threadId: "fork", at: "3", metadata: { title: "a fork" } })
  yield* store.append("fork", { leaf: "3", entries: [makeEntry("4", "four")] })
  yield* TestClock.adjust("1 minute")
  yield* store.fork("fork", { threadId: "fork of fork" })
  yield* store.create({ threadId: "removed" })
  yield* store.append("removed", { leaf: null, entries: [makeEntry("r")] })
  yield* store.fork("removed", { threadId: "orphan" })
  yield* store.delete("removed")
  yield* TestClock.adjust("1 minute")
  yield* store.create({ threadId: "archived" })
  yield* store.append("archived", { leaf: null, entries: [makeEntry("a", "put away")] })
  yield* store.archive("archived")
  yield* store.create({ threadId: "empty 'quoted' $$" })
  yield* TestClock.adjust("1 minute")
  yield* Effect.gen(function* () {
    yield* Agent.run(clerk, "pay", { threadId: "waiting" })
    const { claim, list } = yield* Inbox.Inbox
    const [item] = yield* list()
    yield* claim(item?.id ?? "", { by: ada })
  }).pipe(Effect.provide(workingOn(store)))
  yield* TestClock.adjust("1 day")
})

const ids = ["plain", "fork", "fork of fork", "orphan", "archived", "empty 'quoted' $$", "waiting"]

/** All that a store says of its threads. */
const readStore = Effect.fnUntraced(function* (store: Store) {
  const listed = yield* store.list()
  const archived = yield* store.list({ archived: true })
  const threads = yield* Effect.forEach([...ids, "deepagents/inbox"], (threadId) =>
    Effect.all({
      info: store.info(threadId),
      labels: Effect.map(store.labels(threadId), (labels) => [...labels]),
      path: store.load(threadId),
      lines: Stream.runCollect(store.export(threadId))
    })
  )
  const hits = yield* store.search("two")
  return { listed, archived, threads, hit: hits.items.some(({ threadId }) => threadId === "plain") }
})

/** The changes that a closed store refuses. */
const changesOf = (
  store: Store
): ReadonlyArray<Effect.Effect<unknown, { readonly reason: unknown; readonly message: string }>> => [
  store.append("plain", { leaf: "3", entries: [makeEntry("9")] }),
  store.append("plain", { leaf: "3", behind: "1", entries: [makeEntry("9")] }),
  store.append("fork", { leaf: "4", entries: [makeEntry("9")] }),
  store.create({ threadId: "new" }),
  store.create(),
  store.fork("plain"),
  store.rewind("plain", "1"),
  store.label("plain", "here", "1"),
  store.describe("plain", {}),
  store.archive("plain"),
  store.unarchive("archived"),
  store.delete("plain"),
  store.import(
    Stream.fromIterable([
      JSON.stringify({ v: 1, threadId: "i", createdAt: 0, metadata: {}, archived: false, leaf: "i" }),
      JSON.stringify({ v: 1, parentId: null, at: 0, ...makeEntry("i") })
    ])
  )
]

const copiesAll = Effect.fnUntraced(function* (from: Store, to: Store) {
  paid.length = 0
  yield* fill(from)
  const before = yield* readStore(from)
  assert.isTrue(before.hit)
  const copied = yield* SessionStore.copy(from, to, { name: "the 'new' store $$" })
  assert.deepStrictEqual([copied.threads, copied.copied], [ids.length + 1, ids.length + 1])
  assert.isAbove(copied.bytes, copied.entries * 20)
  assert.deepStrictEqual(yield* readStore(to), before)
  assert.deepStrictEqual(yield* readStore(from), before, "the source is read as before")
  assert.strictEqual((yield* to.info("fork")).origin?.threadId, "plain")

  for (const change of changesOf(from)) {
    const error = yield* Effect.flip(change)
    assert.deepStrictEqual(error.reason, { _tag: "Moved", to: "the 'new' store $$" })
    assert.include(error.message, "the 'new' store $$: go on there")
  }
  const again = yield* from.append("plain", { leaf: "1", entries: [third] })
  assert.strictEqual(again.id, "3", "an append whose answer was lost may come again")
  assert.deepStrictEqual(yield* readStore(from), before, "and nothing was changed")

  // Who approves it in the source pays nothing, and in the target once.
  const decide = (store: Store) =>
    Effect.gen(function* () {
      const inbox = yield* Inbox.Inbox
      const items = yield* inbox.list()
      yield* inbox.decide(
        items.map(({ request }) => Approval.approve(request)),
        { by: ada }
      )
    }).pipe(Effect.provide(workingOn(store)))
  const items = Inbox.Inbox.use(({ list }) => list())
  const waiting = yield* Effect.provide(items, workingOn(to))
  assert.deepStrictEqual(
    waiting.map(({ threadId }) => threadId),
    ["waiting"]
  )
  assert.isTrue(Result.isFailure(yield* Effect.result(decide(from))))
  assert.deepStrictEqual(paid, [])
  const [request] = waiting
  const decisions = request === undefined ? [] : [Approval.approve(request.request)]
  const resumed = yield* Agent.resume(clerk, { threadId: "waiting", decisions }).pipe(
    Effect.provide(workingOn(from)),
    Effect.flip
  )
  assert.include(resumed.message, "go on there")
  const run = yield* Effect.flip(Effect.provide(Agent.run(clerk, "pay", { threadId: "plain" }), workingOn(from)))
  assert.include(run.message, "go on there")
  assert.deepStrictEqual(paid, [])
  yield* decide(to)
  assert.deepStrictEqual(paid, [7])

  // The target goes on, and a second copy changes nothing in it.
  yield* to.append("plain", { leaf: "3", entries: [makeEntry("5")] })
  const after = yield* readStore(to)
  const second = yield* SessionStore.copy(from, to, { name: "the 'new' store $$" })
  assert.deepStrictEqual(second, { ...copied, copied: 0 })
  assert.deepStrictEqual(yield* readStore(to), after)
  const elsewhere = yield* Effect.flip(SessionStore.copy(from, yield* stores.memory, { name: "a third" }))
  assert.deepInclude(elsewhere, { operation: "copy", reason: { _tag: "Moved", to: "the 'new' store $$" } })

  assert.strictEqual(yield* SessionStore.reopen(from), "the 'new' store $$")
  assert.strictEqual(yield* SessionStore.reopen(from), undefined)
  yield* from.create({ threadId: "new" })
  assert.strictEqual((yield* from.append("plain", { leaf: "3", entries: [makeEntry("9")] })).step, 3)
  yield* from.delete("plain")
}, Effect.scoped)

const hold = <R>(
  place: Effect.Effect<Store, never, R | Scope.Scope>,
  partner: Effect.Effect<Store, never, Scope.Scope>,
  test: Vitest.Tester<R | Scope.Scope>
) => {
  test(
    "is copied from",
    Effect.fnUntraced(function* () {
      yield* copiesAll(yield* place, yield* partner)
    }),
    60_000
  )
  test(
    "is copied to",
    Effect.fnUntraced(function* () {
      yield* copiesAll(yield* partner, yield* place)
    }),
    60_000
  )
  test(
    "writers at the source are refused, and lose nothing",
    Effect.fnUntraced(function* () {
      yield* TestClock.withLive(hasAllAcknowledged(yield* place, yield* partner))
    }),
    60_000
  )
}

/** Writers go on until the source refuses them: the target has the acknowledged entries, and nothing else. */
const hasAllAcknowledged = Effect.fnUntraced(function* (from: Store, to: Store) {
  const acknowledged: Array<ReadonlyArray<string>> = []
  let count = 0
  const writer = Effect.fnUntraced(function* (n: number) {
    const threadId = `t${n % 6}`
    const ids: Array<string> = []
    let leaf: string | null = null
    for (;;) {
      const id = `${n}-${ids.length}`
      const outcome: Result.Result<SessionStore.Leaf, SessionError.SessionError> = yield* Effect.result(
        from.append(threadId, { leaf, entries: [makeEntry(id)] })
      )
      if (Result.isSuccess(outcome)) {
        ids.push(id)
        leaf = id
        count++
        yield* Effect.yieldNow
        continue
      }
      const reason: SessionError.Reason = outcome.failure.reason
      if (reason._tag !== "Conflict") return (acknowledged.push(ids), reason)
      leaf = reason.found
    }
  })
  for (let n = 0; n < 6; n++) yield* from.create({ threadId: `t${n}` })
  const creator = Effect.gen(function* () {
    for (let n = 0; ; n++) {
      const outcome = yield* Effect.result(from.create({ threadId: `new ${n}` }))
      if (Result.isFailure(outcome)) return [n, outcome.failure.reason] as const
      yield* Effect.yieldNow
    }
  })
  const writers = yield* Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7], (n) => Effect.forkChild(writer(n)))
  const creating = yield* Effect.forkChild(creator)
  while (count <= 20) yield* Effect.sleep("20 millis")
  yield* SessionStore.copy(from, to, { name: "there" })
  const reasons = yield* Effect.forEach(writers, Fiber.join)
  for (const reason of reasons) assert.deepStrictEqual(reason, { _tag: "Moved", to: "there" })
  const [created, reason] = yield* Fiber.join(creating)
  assert.deepStrictEqual(reason, { _tag: "Moved", to: "there" })
  const found: Array<string> = []
  for (let n = 0; n < 6; n++) {
    const page = yield* to.load(`t${n}`, { limit: 10_000 })
    found.push(...page.entries.map(({ id }) => id))
  }
  assert.deepStrictEqual(found.toSorted(), acknowledged.flat().toSorted())
  for (let n = 0; n < created; n++) yield* to.info(`new ${n}`)
}, Effect.scoped)

const start = (file: string, args: ReadonlyArray<string>) =>
  spawn(process.execPath, [bundle(new URL(`children/${file}`, import.meta.url)), ...args], {
    stdio: ["ignore", "pipe", "pipe"]
  })

/** Runs a process to its end. */
const awaitEnd = (child: ReturnType<typeof start>) =>
  Effect.callback<{ readonly out: string; readonly err: string; readonly code: number | null }>((resume) => {
    let [out, err] = ["", ""]
    child.stdout.on("data", (chunk) => (out += String(chunk)))
    child.stderr.on("data", (chunk) => (err += String(chunk)))
    child.on("close", (code) => resume(Effect.succeed({ out, err, code })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const files = { sqlite: "sessions.db", jsonl: "" }

const inStore = <A, E>(kind: string, path: string, body: (store: Store) => Effect.Effect<A, E>) =>
  Effect.provide(SessionStore.SessionStore.use(body), storeOf(kind, path))

describe("SessionStore.copy, processes", () => {
  for (const [kind, other] of [
    ["sqlite", "jsonl"],
    ["jsonl", "sqlite"]
  ] as const) {
    it.live.runIf(isFull || kind === "sqlite")(
      `kill -9 in the middle: a second copy from ${kind} to ${other} goes on, and two at once are one`,
      () =>
        Effect.gen(function* () {
          const count = scaled(800)
          const cutOff = Effect.gen(function* () {
            const [from, to] = [yield* folder, yield* folder]
            yield* inStore(kind, from, (store) =>
              Effect.forEach(
                Array.from({ length: count }, (_, n) => n),
                (n) =>
                  Effect.andThen(
                    store.create({ threadId: `t${n}` }),
                    store.append(`t${n}`, { leaf: null, entries: [makeEntry("a", `thread ${n}`), makeEntry("b")] })
                  ),
                { discard: true }
              )
            )
            const first = start("copy.ts", [kind, from, other, to])
            const countTarget = () =>
              other === "jsonl"
                ? readdirSync(to).length
                : Result.getOrElse(
                    Result.try(() => {
                      const database = new DatabaseSync(join(to, files.sqlite), { readOnly: true })
                      const row = database.prepare("SELECT count(*) AS n FROM session_threads").get()
                      database.close()
                      return Number(row?.["n"])
                    }),
                    () => 0
                  )
            const killed = yield* Effect.forkChild(awaitEnd(first))
            while (countTarget() < count / 5 && first.exitCode === null) yield* Effect.sleep("2 millis")
            first.kill("SIGKILL")
            // On a busy machine it may be over before it is killed: then another one is.
            if ((yield* Fiber.join(killed)).code !== null || countTarget() === count)
              return yield* Effect.fail("it is over")
            return [from, to] as const
          })
          const [from, to] = yield* Effect.retry(cutOff, { times: 5 })
          const late = yield* inStore(kind, from, (store) => Effect.flip(store.create({ threadId: "late" })))
          assert.deepStrictEqual(late.reason, { _tag: "Moved", to: "the target" })

          const both = yield* Effect.forEach(
            [1, 2],
            () => Effect.suspend(() => awaitEnd(start("copy.ts", [kind, from, other, to]))),
            { concurrency: 2 }
          )
          const results = both.map(({ err, out }) => (assert.strictEqual(err, ""), JSON.parse(out)))
          for (const { entries, threads } of results) assert.deepStrictEqual([threads, entries], [count, 2 * count])
          assert.isBelow(results[0].copied + results[1].copied, count, "some were there before")
          const lines = (store: Store) =>
            Effect.forEach(
              Array.from({ length: count }, (_, n) => n),
              (n) => Stream.runCollect(store.export(`t${n}`))
            )
          assert.deepStrictEqual(yield* inStore(other, to, lines), yield* inStore(kind, from, lines))
        }).pipe(Effect.scoped),
      120_000
    )

    it.live(
      `refuses another process that writes to ${kind}, and has the acknowledged entries in ${other}`,
      () =>
        Effect.gen(function* () {
          const [from, to] = [yield* folder, yield* folder]
          const writer = start("append.ts", [kind, from, "w", "1000000"])
          const done = yield* Effect.forkChild(awaitEnd(writer))
          while (!readdirSync(from).some((name) => name.endsWith(".jsonl") || name === files.sqlite)) {
            yield* Effect.sleep("10 millis")
          }
          yield* Effect.sleep("300 millis")
          const copied = yield* awaitEnd(start("copy.ts", [kind, from, other, to]))
          assert.strictEqual(copied.err, "")
          const { err, out } = yield* Fiber.join(done)
          assert.include(err, "the target: go on there")
          const page = yield* inStore(other, to, (store) => store.load("t", { limit: 10_000 }))
          assert.deepStrictEqual(
            page.entries.map(({ id }) => id),
            out.trim().split("\n").slice(-10_000)
          )
        }).pipe(Effect.scoped),
      60_000
    )
  }
})

describe("SessionStore.copy", () => {
  for (const [kind, from] of Object.entries(stores)) {
    it.live(
      `writers at the source are refused, and lose nothing: ${kind}`,
      () => Effect.scoped(Effect.flatMap(Effect.all([from, stores.sqlite]), ([a, b]) => hasAllAcknowledged(a, b))),
      60_000
    )

    it.live.runIf(isFull || kind === "memory")(
      `10,000 messages: ${kind}`,
      () =>
        Effect.gen(function* () {
          const source = yield* from
          const target = yield* stores.sqlite
          yield* source.create({ threadId: "t" })
          let leaf: string | null = null
          for (let n = 0; n < 10_000; n += 500) {
            const entries = Array.from({ length: 500 }, (_, at) => makeEntry(`${100_000 + n + at}`))
            leaf = (yield* source.append("t", { leaf, entries })).id
          }
          const copied = yield* SessionStore.copy(source, target, { name: "there" })
          assert.deepStrictEqual([copied.threads, copied.entries], [1, 10_000])
          const { entries } = yield* target.load("t", { limit: 10_000 })
          assert.deepStrictEqual([entries.length, entries[0]?.id, entries.at(-1)?.id], [10_000, "100000", "109999"])
          assert.deepStrictEqual(yield* SessionStore.copy(source, target, { name: "there" }), { ...copied, copied: 0 })
        }).pipe(Effect.scoped),
      60_000
    )
  }

  it.effect("a thread that can't be read is named, and the others are copied", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const jsonl = yield* built(jsonlIn(path))
      for (const threadId of ["a", "b", "c"]) {
        yield* jsonl.create({ threadId })
        yield* jsonl.append(threadId, { leaf: null, entries: [makeEntry("1"), makeEntry("2")] })
      }
      const [file = ""] = readdirSync(path).filter((name) => name.startsWith("b."))
      const text = readFileSync(join(path, file), "utf8")
      writeFileSync(join(path, file), text.replace('"_tag":"Append"', '"_tag":"Upend"'))
      const target = yield* stores.memory
      const again = yield* built(jsonlIn(path))
      for (let time = 0; time < 2; time++) {
        const error = yield* Effect.flip(SessionStore.copy(again, target, { name: "there" }))
        if (!(error instanceof SessionStore.CopyError)) return assert.fail(error.message)
        assert.deepStrictEqual(
          error.failures.map(({ threadId }) => threadId),
          ["b"]
        )
        assert.include(error.message, '2 threads are in both stores, and 1 are not: "b" (')
        assert.include(error.message, "line 2")
        assert.deepInclude(error.copied, { threads: 2, copied: time === 0 ? 2 : 0, entries: 4 })
      }
      assert.strictEqual((yield* target.load("c")).entries.length, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("an entry that a database can't read, and another thread of the same id, are named", () =>
    Effect.gen(function* () {
      const file = yield* sqlite.place
      const source = yield* built(sqlite.layer(file))
      for (const threadId of ["broken", "good", "other"]) {
        yield* source.create({ threadId })
        yield* source.append(threadId, { leaf: null, entries: [makeEntry(threadId)] })
      }
      const database = new DatabaseSync(file)
      database.exec("UPDATE session_entries SET body = '{' WHERE id = 'broken'")
      database.close()
      const target = yield* stores.memory
      yield* target.create({ threadId: "other" })
      yield* target.append("other", { leaf: null, entries: [makeEntry("something else")] })
      const error = yield* Effect.flip(SessionStore.copy(source, target, { name: "there" }))
      if (!(error instanceof SessionStore.CopyError)) return assert.fail(error.message)
      assert.deepStrictEqual(error.failures, [
        { threadId: "broken", problem: "entry broken: it is no JSON" },
        { threadId: "other", problem: "the target has another thread with this id; give one of them another id" }
      ])
      assert.strictEqual((yield* target.load("good")).entries.length, 1)
      assert.deepStrictEqual(
        (yield* target.load("other")).entries.map(({ id }) => id),
        ["something else"],
        "what is in the target stays"
      )
    }).pipe(Effect.scoped)
  )

  it.effect("an empty thread of the same id, which somebody else created, is named", () =>
    Effect.gen(function* () {
      const [source, target] = [yield* stores.memory, yield* stores.sqlite]
      yield* TestClock.setTime(1_000)
      yield* source.create({ threadId: "t" })
      yield* TestClock.adjust("1 minute")
      yield* target.create({ threadId: "t" })
      const error = yield* Effect.flip(SessionStore.copy(source, target, { name: "there" }))
      assert.include(error.message, "the target has another thread with this id")
    }).pipe(Effect.scoped)
  )

  it.effect("a copy that was cut off while it closed the source closes the rest", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const source = yield* built(jsonlIn(path))
      yield* source.create({ threadId: "t" })
      // The mark of the folder comes first, the marks of its threads behind it.
      writeFileSync(join(path, "moved.json"), JSON.stringify({ to: "there" }))
      yield* SessionStore.copy(source, yield* stores.memory, { name: "there" })
      for (const store of [source, yield* built(jsonlIn(path))]) {
        const error = yield* Effect.flip(store.append("t", { leaf: null, entries: [makeEntry("1")] }))
        assert.deepStrictEqual(error.reason, { _tag: "Moved", to: "there" })
      }
    }).pipe(Effect.scoped)
  )

  it.effect("refuses to copy a store to itself, to a moved one, or from a wrapper of one", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const [one, two] = [yield* built(jsonlIn(path)), yield* built(jsonlIn(path))]
      yield* one.create({ threadId: "t" })
      for (const target of [one, two]) {
        const error = yield* Effect.flip(SessionStore.copy(one, target, { name: "there" }))
        assert.include(error.message, "are the same store")
      }
      yield* one.append("t", { leaf: null, entries: [makeEntry("1")] })
      const wrapped = yield* Effect.flip(SessionStore.copy({ ...one }, yield* stores.memory, { name: "there" }))
      assert.include(wrapped.message, "without what wraps it")
      yield* SessionStore.copy(one, yield* stores.memory, { name: "there" })
      const third = yield* stores.memory
      yield* third.create({ threadId: "t" })
      const moved = yield* Effect.flip(SessionStore.copy(third, two, { name: "here" }))
      assert.include(moved.message, "were moved to there")
      yield* third.append("t", { leaf: null, entries: [makeEntry("1")] })
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a line that a slow writer adds behind the mark of a JSONL file does not count, until it is opened again",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        const store = yield* built(jsonlIn(path))
        yield* store.create({ threadId: "t" })
        yield* store.append("t", { leaf: null, entries: [makeEntry("1")] })
        const target = yield* stores.memory
        yield* SessionStore.copy(store, target, { name: "there" })
        const [file = ""] = readdirSync(path).filter((name) => name.startsWith("t."))
        const late = { v: 1, _tag: "Append", by: "slow", at: 0, leaf: "1", entries: [makeEntry("2")] }
        writeFileSync(join(path, file), `${JSON.stringify(late)}\n`, { flag: "a" })
        for (const one of [store, yield* built(jsonlIn(path))]) {
          assert.deepStrictEqual(yield* one.leaf("t"), { id: "1", step: 1 })
          const error = yield* Effect.flip(one.append("t", { leaf: "1", entries: [makeEntry("3")] }))
          assert.deepStrictEqual(error.reason, { _tag: "Moved", to: "there" })
        }
        assert.strictEqual((yield* SessionStore.copy(store, target, { name: "there" })).entries, 1)
        yield* SessionStore.reopen(store)
        assert.strictEqual((yield* store.append("t", { leaf: "1", entries: [makeEntry("2")] })).step, 2)
      }).pipe(Effect.scoped)
  )

  it.effect("the mark is one line, and no statement", () =>
    Effect.gen(function* () {
      const source = yield* stores.sqlite
      yield* source.create({ threadId: "t" })
      yield* SessionStore.copy(source, yield* stores.memory, {
        name: "a'); DROP TABLE session_threads; --\n\u001b[2Jb"
      })
      const error = yield* Effect.flip(source.create({ threadId: "u" }))
      assert.deepStrictEqual(error.reason, { _tag: "Moved", to: "a'); DROP TABLE session_threads; -- [2Jb" })
      yield* source.info("t")
    }).pipe(Effect.scoped)
  )

  const kinds = Object.entries(stores)
  for (const [at, [kind, from]] of kinds.entries()) {
    for (const [other, to] of isFull ? kinds : kinds.slice((at + 1) % kinds.length).slice(0, 1)) {
      it.effect(`copies all threads from ${kind} to ${other}, and closes the source`, () =>
        Effect.scoped(Effect.flatMap(Effect.all([from, to]), ([source, target]) => copiesAll(source, target)))
      )
    }
  }
})

layer(Postgres.layer, { timeout: 120_000 })("SessionStore.copy, Postgres", (it) => {
  const place = Effect.flatMap(postgres.place, (at) => built(postgres.layer(at)))
  hold(place, stores.sqlite, it.effect)
})

describe.skipIf(!hasRedis)("SessionStore.copy, Redis", () => {
  layer(RedisServer.layer, { timeout: 60_000 })((it) => {
    const place = Effect.flatMap(redis.place, (at) => built(redis.layer(at)))
    hold(place, stores.jsonl, it.effect)
  })
})
