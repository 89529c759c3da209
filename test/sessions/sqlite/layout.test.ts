/** The tables of an SQLite file return the same as memory, though an append writes to no index of ids, of times or of words; and a file of an older layout keeps all content. */
import { spawn } from "node:child_process"
import { cpSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Message } from "effect-deepagents"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { bundle } from "../../bundle.ts"
import { scaled } from "../../scale.ts"
import { folder } from "../places.ts"

const message = (id: string, text = `text ${id}`): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(text, { id }) }
})

/** A program's results on a file, and in memory. */
const onBoth = <A, E>(program: (store: SessionStore.Service) => Effect.Effect<A, E>) => {
  const on = <E2>(layer: Layer.Layer<SessionStore.SessionStore, E2>) =>
    SessionStore.SessionStore.use(program).pipe(Effect.provide([layer, TestClock.layer()]))
  return Effect.gen(function* () {
    const file = join(yield* folder, "sessions.db")
    return [yield* on(SqliteSessions.layer({ file })), yield* on(MemorySessions.layer)] as const
  }).pipe(Effect.scoped)
}

/** All pages of the list, each of so many threads. */
const listThreads = Effect.fnUntraced(function* (store: SessionStore.Service, limit: number, archived: boolean) {
  const found: Array<string> = []
  let cursor: string | undefined
  do {
    const page: SessionStore.Listing<SessionStore.Thread> = yield* store.list({
      limit,
      archived,
      ...(cursor === undefined ? {} : { cursor })
    })
    found.push(...page.items.map(({ threadId, updatedAt }) => `${threadId} ${updatedAt}`))
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return found
})

/** Runs programs, each on a file and in memory: both must come to the same. */
const agrees = <A>(
  arbitrary: fc.Arbitrary<A>,
  program: (store: SessionStore.Service, value: A) => Effect.Effect<unknown, unknown>,
  examples: ReadonlyArray<A> = []
) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, async (value) => {
        const [sqlite, memory] = await Effect.runPromise(onBoth((store) => program(store, value)))
        assert.deepStrictEqual(sqlite, memory)
      }),
      { numRuns: scaled(40), examples: examples.map((value) => [value]) }
    )
  )

const change = fc.record({
  thread: fc.nat(5),
  later: fc.constantFrom(0, 1, 400, 600, 999, 1_000, 1_001, 5_000),
  what: fc.constantFrom("append", "append", "append", "append", "describe", "archive", "unarchive", "label", "search")
})

const changes = fc.record({
  all: fc.array(change, { minLength: 1, maxLength: 60 }),
  limit: fc.integer({ min: 1, max: 4 })
})

const append = (thread: number, later: 0 | 5_000) => ({ thread, later, what: "append" as const })

/** A thread that goes on at its old end, long after it, while others are ahead of it in the list. */
const muchLater = { all: [append(0, 0), append(0, 0), append(1, 5_000), append(2, 0), append(0, 5_000)], limit: 1 }

const ids = fc.array(fc.array(fc.string({ unit: fc.constantFrom("a", "b", "~", "é", "😀", "\uffff"), maxLength: 3 })), {
  maxLength: 30
})

describe("the tables of an SQLite file", () => {
  it.live(
    "list threads by their last change, however close changes are, and find all that was written",
    () =>
      agrees(
        changes,
        Effect.fnUntraced(function* (store, { all, limit }) {
          const seen: Array<unknown> = []
          for (let n = 0; n < 6; n++) yield* store.create({ threadId: `t${n}` })
          for (const [n, { later, thread, what }] of all.entries()) {
            const threadId = `t${thread}`
            yield* TestClock.adjust(later)
            const { archived, leaf } = yield* store.info(threadId)
            if (what === "describe") yield* store.describe(threadId, { n })
            else if (what === "archive") yield* store.archive(threadId)
            else if (what === "unarchive") yield* store.unarchive(threadId)
            else if (what === "search")
              seen.push((yield* store.search("word", { limit: 1_000 })).items.map(({ entryId }) => entryId))
            else if (what === "label" && !archived) yield* store.label(threadId, `l${n % 3}`, leaf.id)
            else if (!archived)
              yield* store.append(threadId, { leaf: leaf.id, entries: [message(`e${n}`, `word ${n}`)] })
          }
          return [seen, yield* listThreads(store, limit, false), yield* listThreads(store, limit, true)]
        }),
        [muchLater]
      ),
    60_000
  )

  it.effect("list a thread that somebody whose clock is ahead put in its place, and that goes on behind it", () =>
    Effect.gen(function* () {
      const [sqlite, memory] = yield* onBoth(
        Effect.fnUntraced(function* (store) {
          const at = (time: number) => TestClock.setTime(time)
          const goOn = Effect.fnUntraced(function* (threadId: string, id: string) {
            const { id: leaf } = yield* store.leaf(threadId)
            yield* store.append(threadId, { leaf, entries: [message(id)] })
          })
          for (const threadId of ["ahead", "between"]) yield* store.create({ threadId })
          yield* at(2_000)
          yield* goOn("ahead", "e1")
          yield* at(2_700)
          yield* goOn("between", "e2")
          yield* at(2_900)
          yield* store.describe("ahead", { title: "first" })
          yield* at(2_500)
          yield* goOn("ahead", "e3")
          return yield* listThreads(store, 1, false)
        })
      )
      assert.deepStrictEqual(sqlite, ["between 2700", "ahead 2500"])
      assert.deepStrictEqual(memory, sqlite)
    })
  )

  it.live(
    "refuse a taken id, behind any ids, also in a fork",
    () =>
      agrees(
        ids,
        Effect.fnUntraced(function* (store, batches) {
          yield* store.create({ threadId: "t0" })
          const outcomes: Array<string> = []
          for (const [n, batch] of batches.entries()) {
            const threadId = `t${n > batches.length / 2 ? 1 : 0}`
            if (n === Math.floor(batches.length / 2) + 1) yield* store.fork("t0", { threadId: "t1" })
            const { id } = yield* store.leaf(threadId)
            const entries = batch.filter((one) => one !== "").map((one) => message(one))
            const tried = yield* Effect.result(store.append(threadId, { leaf: id, entries }))
            outcomes.push(tried._tag === "Success" ? `${tried.success.step}` : tried.failure.message)
          }
          return outcomes
        })
      ),
    60_000
  )

  it.live(
    "find each of thousands of entries by its id, and go on behind it",
    Effect.fnUntraced(function* () {
      const file = join(yield* folder, "sessions.db")
      const on = <A, E>(body: (store: SessionStore.Service) => Effect.Effect<A, E>) =>
        SessionStore.SessionStore.use(body).pipe(Effect.provide(SqliteSessions.layer({ file })))
      // In no order: some are before and some behind all that are there.
      const all = Array.from({ length: 2_000 }, (_, n) => `${(n * 7_919) % 2_000}-${n}`)
      yield* on(
        Effect.fnUntraced(function* (store) {
          yield* store.create({ threadId: "t" })
          for (let n = 0; n < all.length; n += 100) {
            const leaf = n === 0 ? null : (all[n - 1] ?? null)
            yield* store.append("t", { leaf, entries: all.slice(n, n + 100).map((id) => message(id)) })
          }
          // They were looked for in an index, but for the last ones.
          const database = new DatabaseSync(file, { readOnly: true })
          assert.isAbove(Number(database.prepare("SELECT count(*) AS count FROM session_ids").get()?.["count"]), 1_500)
          database.close()
          yield* store.fork("t", { threadId: "fork", at: all[999] ?? null })
        })
      )
      yield* on(
        Effect.fnUntraced(function* (store) {
          for (const [n, id] of all.entries()) {
            if (n % 97 !== 0) continue
            const { entries } = yield* store.load("t", { from: id, limit: 2 })
            assert.deepStrictEqual(
              entries.map((entry) => entry.id),
              all.slice(Math.max(0, n - 1), n + 1)
            )
            const leaf = (yield* store.leaf("fork")).id
            const taken = yield* Effect.flip(store.append("fork", { leaf, entries: [message(id)] }))
            assert.strictEqual(taken.reason._tag, "InvalidEntry")
          }
          const behind = all[500] ?? null
          const leaf = yield* store.append("t", { leaf: all.at(-1) ?? null, behind, entries: [message("new")] })
          assert.deepStrictEqual(leaf, { id: "new", step: 502 })
          assert.strictEqual((yield* store.search("text", { threadId: "t", limit: 1_000 })).items.length, 1_000)
        })
      )
    })
  )

  it.live(
    "look for an id among many thousands as among few",
    Effect.fnUntraced(function* () {
      /** The least time, in milliseconds, that an append takes whose id is before others: others wait for a busy machine. */
      const cost = Effect.fnUntraced(function* (count: number) {
        const file = join(yield* folder, "sessions.db")
        return yield* SessionStore.SessionStore.use(
          Effect.fnUntraced(function* (store) {
            yield* store.create({ threadId: "t" })
            let leaf: string | null = null
            const append = (ids: ReadonlyArray<string>) => {
              const appended = store.append("t", { leaf, entries: ids.map((id) => message(id)) })
              leaf = ids.at(-1) ?? null
              return appended
            }
            for (let n = 0; n < count; n += 1_000) {
              yield* append(Array.from({ length: 1_000 }, (_, at) => `z${n + at}`))
            }
            const spent: Array<number> = []
            for (let n = 0; n < 60; n++) {
              const began = performance.now()
              yield* append([`a${n}`])
              spent.push(performance.now() - began)
            }
            return Math.min(...spent)
          })
        ).pipe(Effect.provide(SqliteSessions.layer({ file })))
      })
      const few = yield* cost(1_000)
      const many = yield* cost(40_000)
      assert.isBelow(many / few, 6, `${few} ms among 1,000, ${many} ms among 40,000`)
    }),
    60_000
  )
})

interface OldEntry {
  readonly pk: number
  readonly id: string
  readonly parent: number | null
}

describe("a file of an older layout", () => {
  for (const version of ["0.1.0", "0.1.0-2"]) {
    it.live(
      `has every thread that it had: ${version}`,
      Effect.fnUntraced(function* () {
        const file = join(yield* folder, "sessions.db")
        cpSync(join(import.meta.dirname, "..", "corpus", version, "threads.db"), file)
        const old = new DatabaseSync(file)
        const entries = new Map(
          (old.prepare("SELECT pk, id, parent FROM session_entries").all() as unknown as ReadonlyArray<OldEntry>).map(
            (entry) => [entry.pk, entry]
          )
        )
        const threads = old
          .prepare("SELECT id, leaf, archived, updated_at AS at FROM session_threads ORDER BY updated_at DESC, id")
          .all()
        old.close()
        const pathTo = (pk: unknown): ReadonlyArray<string> => {
          const entry = entries.get(Number(pk))
          return entry === undefined ? [] : [...pathTo(entry.parent), entry.id]
        }
        yield* Effect.gen(function* () {
          const store = yield* SessionStore.SessionStore
          for (const { id, leaf } of threads) {
            const path = yield* store.load(String(id))
            assert.deepStrictEqual(
              path.entries.map((entry) => entry.id),
              pathTo(leaf)
            )
            for (const one of path.entries.slice(-3)) {
              const taken = { leaf: path.entries.at(-1)?.id ?? null, entries: [message(one.id)] }
              if (String(id) !== "branched") yield* Effect.flip(store.append(String(id), taken))
            }
          }
          assert.deepStrictEqual(
            (yield* store.list({ limit: 1_000 })).items.map(({ threadId }) => threadId),
            threads.filter(({ archived }) => archived === 0).map(({ id }) => String(id))
          )
          assert.isAbove((yield* store.search("it")).items.length, 0)
        }).pipe(Effect.provide(SqliteSessions.layer({ file })))
      })
    )
  }

  const older = Effect.gen(function* () {
    const path = yield* folder
    const file = join(path, "sessions.db")
    cpSync(join(import.meta.dirname, "..", "corpus", "0.1.0-2", "threads.db"), file)
    return { path, file }
  })

  const open = (file: string) =>
    SessionStore.SessionStore.use((store) => store.list({ limit: 1_000 })).pipe(
      Effect.provide(SqliteSessions.layer({ file }))
    )

  it.live(
    "is brought up to date once by processes that open it at once",
    Effect.fnUntraced(function* () {
      const { file, path } = yield* older
      const appending = (name: string) =>
        Effect.callback<number | null>((resume) => {
          const program = bundle(new URL("../children/append.ts", import.meta.url))
          const args = [program, "sqlite", path, name, "5"]
          const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] })
          child.on("close", (code) => resume(Effect.succeed(code)))
        })
      const names = ["a", "b", "c"]
      assert.deepStrictEqual(yield* Effect.all(names.map(appending), { concurrency: "unbounded" }), [0, 0, 0])
      const found = yield* open(file)
      assert.strictEqual(found.items.length, 16)
      assert.strictEqual(found.items.find(({ threadId }) => threadId === "t")?.leaf.step, 15)
    }),
    60_000
  )

  it.live(
    "stays unchanged if the upgrade fails in the middle",
    Effect.fnUntraced(function* () {
      const { file } = yield* older
      const change = (statement: string) => {
        const database = new DatabaseSync(file)
        database.exec(statement)
        database.close()
      }
      change("CREATE VIEW session_ids AS SELECT 1")
      assert.include((yield* Effect.flip(open(file))).message, "session_ids")
      change(
        "INSERT INTO session_entries (pk, thread, id, step, at, kind, body) VALUES (9999, 1, 'x', 1, 0, 'Label', '')"
      )
      change("DROP VIEW session_ids")
      assert.strictEqual((yield* open(file)).items.length, 15)
    })
  )
})

describe("a damaged file", () => {
  const damaged = Effect.fnUntraced(function* <A, E>(
    statements: string,
    body: (store: SessionStore.Service) => Effect.Effect<A, E>
  ) {
    const file = join(yield* folder, "sessions.db")
    const on = <B, E2>(use: (store: SessionStore.Service) => Effect.Effect<B, E2>) =>
      SessionStore.SessionStore.use(use).pipe(Effect.provide(SqliteSessions.layer({ file })))
    yield* on(
      Effect.fnUntraced(function* (store) {
        yield* store.create({ threadId: "t" })
        yield* store.append("t", { leaf: null, entries: [message("a"), message("b")] })
        yield* store.fork("t", { threadId: "fork" })
      })
    )
    const database = new DatabaseSync(file)
    database.exec(statements)
    database.close()
    return yield* on(body)
  })

  it.live("whose threads come from each other, or whose entries are their own parents, is not read for ever", () =>
    Effect.gen(function* () {
      yield* damaged("UPDATE session_threads SET origin = 3 - key, origin_last = leaf_pk", (store) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* store.labels("fork")).size, 0)
          const taken = yield* Effect.flip(store.append("fork", { leaf: "b", entries: [message("a")] }))
          assert.strictEqual(taken.reason._tag, "InvalidEntry")
          assert.strictEqual((yield* store.append("t", { leaf: "b", entries: [message("c")] })).step, 3)
        })
      )
      yield* damaged("UPDATE session_entries SET parent = pk", (store) =>
        Effect.gen(function* () {
          const failed = yield* Effect.flip(store.load("t"))
          assert.strictEqual(failed.reason._tag, "Corrupt")
          assert.include(failed.message, "entry b")
        })
      )
    })
  )

  it.live("with numbers that nobody wrote is told as such", () =>
    damaged("UPDATE session_threads SET step = 9007199254740993 WHERE id = 't'", (store) =>
      Effect.gen(function* () {
        const failed = yield* Effect.flip(store.append("t", { leaf: "b", entries: [message("c")] }))
        assert.strictEqual(failed.reason._tag, "Corrupt")
      })
    )
  )

  it.live("a thread without room says to fork it, and goes on in the fork", () =>
    damaged(
      "UPDATE session_entries SET pk = (2 << 24) - 2 WHERE id = 'b'; UPDATE session_threads SET leaf_pk = (2 << 24) - 2 WHERE id = 't'; DELETE FROM session_threads WHERE id = 'fork'",
      (store) =>
        Effect.gen(function* () {
          yield* store.append("t", { leaf: "b", entries: [message("c")] })
          const full = yield* Effect.flip(store.append("t", { leaf: "c", entries: [message("d")] }))
          assert.include(full.message, "16,777,215 entries: fork it")
          assert.include((yield* Effect.flip(store.label("t", "l", "c"))).message, "fork it")
          yield* store.fork("t", { threadId: "next" })
          assert.strictEqual((yield* store.append("next", { leaf: "c", entries: [message("d")] })).step, 4)
          const { entries } = yield* store.load("next")
          assert.deepStrictEqual(
            entries.map(({ id }) => id),
            ["a", "b", "c", "d"]
          )
        })
    )
  )
})
