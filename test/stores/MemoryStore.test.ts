/**
 * Long-term facts: the same on every storage.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result, Stream } from "effect"
import { MemoryStore, Storage } from "effect-deepagents/stores"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { limits } from "../../src/stores/internal/facts.ts"
import { scaled } from "../scale.ts"
import { asked, Embeddings } from "./embeddings.ts"
import { name, onAll } from "./places.ts"

let count = 0
const fresh = () => `tenant/${++count}`

const texts = (facts: ReadonlyArray<MemoryStore.Fact>) => facts.map((fact) => fact.text)

/** A store on the storage of the test. */
const inStore = <A, E, R>(body: (store: MemoryStore.MemoryStore["Service"]) => Effect.Effect<A, E, R>) =>
  Effect.provide(MemoryStore.MemoryStore.use(body), MemoryStore.layer)

const failure = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(Effect.result(effect), Result.getFailure)

onAll((it) => {
  it.effect("keeps facts as they were added, and says when", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* TestClock.setTime(86_400_000)
        const metadata = { source: "chat", n: [1, null, { deep: "ä\u0000" }] }
        const added = yield* store.add(own, { text: "Ada lives in Oslo", category: "person", metadata })
        assert.deepStrictEqual(added, {
          id: added.id,
          text: "Ada lives in Oslo",
          category: "person",
          at: 86_400_000,
          metadata
        })
        const plain = yield* store.add(own, { text: "line one\nline two \u0000 \ud800" })
        assert.strictEqual(plain.category, "general")
        const all = yield* Stream.runCollect(store.facts(own))
        assert.sameDeepMembers([...all], [added, plain])
        // Two texts that differ are two facts, even if no encoding has them.
        const ids = yield* Effect.forEach(["\ud800", "\ud801"], (text) => store.add(fresh(), { text }))
        assert.notStrictEqual(ids[0]?.id, ids[1]?.id)
      })
    )
  )

  it.effect("a fact of the same text takes the place of the old one", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        const first = yield* store.add(own, { text: "Ada likes tea", category: "a" })
        const second = yield* store.add(own, { text: "Ada likes tea", category: "b" })
        assert.strictEqual(second.id, first.id)
        assert.deepStrictEqual(yield* Stream.runCollect(store.facts(own)), [second])
      })
    )
  )

  it.effect("search finds beginnings of words in any case, the best first, then the latest", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        for (const text of [
          "The user prefers Tea",
          "The user lives in Oslo, the capital",
          "The user teaches physics",
          "The dog is called Ænima",
          "北京 is where the parents live"
        ]) {
          yield* store.add(own, { text })
          yield* TestClock.adjust("1 second")
        }
        const search = (text: string) => Effect.map(store.search(own, { text }), texts)
        assert.deepStrictEqual(yield* search("TEA"), ["The user teaches physics", "The user prefers Tea"])
        assert.deepStrictEqual(yield* search("user tea prefer"), [
          "The user prefers Tea",
          "The user teaches physics",
          "The user lives in Oslo, the capital"
        ])
        // "the" is in all of them, "oslo" in one: it counts for more.
        assert.strictEqual((yield* search("oslo the the dog"))[0], "The dog is called Ænima")
        assert.strictEqual((yield* search("oslo the"))[0], "The user lives in Oslo, the capital")
        assert.strictEqual((yield* search("is prefers"))[0], "The user prefers Tea")
        assert.deepStrictEqual(yield* search("ÆNIMA"), ["The dog is called Ænima"])
        assert.deepStrictEqual(yield* search("京"), ["北京 is where the parents live"])
        assert.deepStrictEqual(yield* search("slo"), [])
        assert.deepStrictEqual(yield* search("'; DROP TABLE x; -- % _ \\ \" *"), [])
        assert.strictEqual((yield* store.search(own, {})).length, 5)
        assert.deepStrictEqual(texts(yield* store.search(own, { limit: 1 })), ["北京 is where the parents live"])
      })
    )
  )

  it.effect("a category narrows both searches", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.add(own, { text: "one tea", category: "a", vector: [1, 0] })
        yield* store.add(own, { text: "two tea", category: "b", vector: [1, 0.1] })
        assert.deepStrictEqual(texts(yield* store.search(own, { text: "tea", category: "b" })), ["two tea"])
        const near = yield* store.nearest(own, [1, 0], { category: "b" })
        assert.deepStrictEqual(
          near.map(({ fact }) => fact.text),
          ["two tea"]
        )
      })
    )
  )

  it.effect("nearest orders by the angle at any length, and skips vectors of other dimensions", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.add(own, { text: "same", vector: [1e200, 0] })
        yield* store.add(own, { text: "near", vector: [1, 0.2] })
        yield* store.add(own, { text: "right", vector: [0, 5] })
        yield* store.add(own, { text: "opposite", vector: [-1e-200, 0] })
        yield* store.add(own, { text: "of another model", vector: [1, 0, 0] })
        yield* store.add(own, { text: "none" })
        const near = yield* store.nearest(own, [3, 0])
        assert.deepStrictEqual(
          near.map(({ fact }) => fact.text),
          ["same", "near", "right", "opposite"]
        )
        const expected = [1, 1 / Math.hypot(1, 0.2), 0, -1]
        near.forEach(({ similarity }, index) => assert.closeTo(similarity, expected[index] ?? 9, 1e-6))
        assert.strictEqual((yield* store.nearest(own, [1, 0], { limit: 2 })).length, 2)
        for (const vector of [[], [0, 0], [Number.NaN], [Infinity]]) {
          const error = yield* failure(store.nearest(own, vector))
          assert.include(String(error), "finite numbers")
        }
      })
    )
  )

  it.effect("a removed fact is not found", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        const { id } = yield* store.add(own, { text: "a secret wish", vector: [1, 1] })
        yield* store.add(own, { text: "another", vector: [1, 0] })
        assert.isTrue(yield* store.remove(own, id))
        assert.isFalse(yield* store.remove(own, id))
        assert.isFalse(yield* store.remove(own, "\u0000"))
        assert.deepStrictEqual(yield* store.search(own, { text: "secret" }), [])
        assert.deepStrictEqual(
          (yield* store.nearest(own, [1, 1])).map(({ fact }) => fact.text),
          ["another"]
        )
        const { table } = yield* Storage.Storage
        const counts = Effect.all([table("facts").count(own), table("vectors").count(own)])
        assert.deepStrictEqual(yield* counts, [1, 1])
        yield* store.clear(own)
        assert.deepStrictEqual(yield* counts, [0, 0])
        assert.deepStrictEqual(yield* store.search(own, {}), [])
        assert.deepStrictEqual(yield* store.nearest(own, [1, 1]), [])
      })
    )
  )

  it.effect("refuses facts that are too large or malformed, and stores nothing", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()

        const wrong: ReadonlyArray<Parameters<MemoryStore.MemoryStore["Service"]["add"]>[1]> = [
          { text: " \n" },
          { text: "x".repeat(limits.text + 1) },
          { text: "x", category: "" },
          { text: "x", category: "y".repeat(limits.category + 1) },
          { text: "x", category: "a\nb" },
          { text: "x", metadata: { big: "y".repeat(limits.metadata) } },
          { text: "x", vector: [] },
          { text: "x", vector: Array.from({ length: limits.dimensions + 1 }, () => 1) },
          { text: "x", vector: [Number.NaN] }
        ]
        for (const fact of wrong) assert.include(String(yield* failure(store.add(own, fact))), "can't be stored")
        for (const wrongName of ["", "a\u0000b", "a\nb", "\ud800", "x".repeat(257)]) {
          assert.include(String(yield* failure(store.add(wrongName, { text: "x" }))), "no name")
          assert.include(String(yield* failure(store.search(wrongName, {}))), "no name")
          assert.include(String(yield* failure(store.nearest(wrongName, [1]))), "no name")
          assert.include(String(yield* failure(store.remove(wrongName, "x"))), "no name")
          assert.include(String(yield* failure(store.clear(wrongName))), "no name")
          assert.include(String(yield* failure(Stream.runCollect(store.facts(wrongName)))), "no name")
        }
        assert.deepStrictEqual(yield* store.search(own, {}), [])
      })
    )
  )

  it.effect("a full namespace refuses new facts with a reason, and allows changes", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        const first = yield* store.add(own, { text: "first" })
        const { table } = yield* Storage.Storage
        const rows = Array.from({ length: limits.facts - 1 }, (_, index) => ({
          key: `x${index}`,
          value: JSON.stringify({ ...first, id: `x${index}`, text: `filler ${index}` })
        }))
        yield* table("facts").put(own, rows)
        const error = yield* failure(store.add(own, { text: "one too many" }))
        assert.include(String(error), "10000 facts")
        assert.strictEqual((yield* store.add(own, { text: "first", category: "changed" })).category, "changed")
        assert.strictEqual((yield* store.search(own, { text: "filler", limit: 1e9 })).length, 100)
        assert.strictEqual(yield* Stream.runCount(store.facts(own)), limits.facts)
      })
    )
  )

  it.effect("nobody reaches another namespace, by any names or words", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const context = yield* Effect.context<never>()
        const prefix = fresh()
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(name(20), name(20), fc.string({ unit: "binary" }), (left, right, query) => {
              fc.pre(left !== right)
              const [one, other] = [`${prefix} ${left}`, `${prefix} ${right}`]
              return Effect.gen(function* () {
                yield* Effect.all([store.clear(one), store.clear(other)])
                const { id } = yield* store.add(one, { text: `theirs ${query}`, vector: [1] })
                assert.deepStrictEqual(yield* store.search(other, { text: `theirs ${query}` }), [])
                assert.deepStrictEqual(yield* store.search(other, {}), [])
                assert.deepStrictEqual(yield* store.nearest(other, [1]), [])
                assert.isFalse(yield* store.remove(other, id))
                yield* store.clear(other)
                assert.strictEqual((yield* store.search(one, {})).length, 1)
              }).pipe(Effect.provide(context), Effect.runPromise)
            }),
            { numRuns: scaled(15) }
          )
        )
      })
    )
  )

  it.effect("two stores on one storage find each other's facts, and no removed ones", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      const open = Effect.map(
        Layer.build(Layer.fresh(Layer.provide(MemoryStore.layer, Layer.succeed(Storage.Storage, storage)))),
        Context.get(MemoryStore.MemoryStore)
      )
      const stores = [yield* open, yield* open] as const
      const context = yield* Effect.context<never>()
      const word = fc.constantFrom("tea", "teach", "oslo", "京")
      const step = fc.record({
        by: fc.constantFrom(0, 1),
        kind: fc.constantFrom("add", "add", "remove", "clear", "find"),
        text: fc.array(word, { minLength: 1, maxLength: 3 }).map((some) => some.join(" ")),
        category: fc.constantFrom("a", "b")
      })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 12 }), (steps) => {
            const own = fresh()
            const known = new Map<string, string>()
            return Effect.gen(function* () {
              for (const { by, category, kind, text } of steps) {
                const store = stores[by === 0 ? 0 : 1]
                if (kind === "add") {
                  yield* store.add(own, { text, category, vector: [text.length, 1] })
                  known.set(text, category)
                } else if (kind === "remove") {
                  const facts = yield* Stream.runCollect(store.facts(own))
                  for (const fact of facts) if (fact.text === text) yield* store.remove(own, fact.id)
                  known.delete(text)
                } else if (kind === "clear") {
                  yield* store.clear(own)
                  known.clear()
                }
                for (const one of stores) {
                  const expected = [...known].filter(
                    ([other, its]) => its === category && other.split(" ").some((part) => part.startsWith("te"))
                  )
                  const found = yield* one.search(own, { text: "te", category, limit: 100 })
                  assert.sameMembers(
                    texts(found),
                    expected.map(([other]) => other)
                  )
                  const near = yield* one.nearest(own, [1, 1], { limit: 100 })
                  assert.sameMembers(
                    near.map(({ fact }) => fact.text),
                    [...known.keys()]
                  )
                }
              }
            }).pipe(Effect.provide(context), Effect.runPromise)
          }),
          { numRuns: scaled(40) }
        )
      )
    })
  )

  it.effect("an interrupted writer leaves no fact that is stored and not found", () =>
    Effect.gen(function* () {
      const { table } = yield* Storage.Storage
      const slow = Layer.succeed(Storage.Storage, {
        table: (name: string) => {
          const own = table(name)
          return {
            ...own,
            put: (...row: Parameters<typeof own.put>) => Effect.tap(own.put(...row), () => Effect.yieldNow)
          }
        }
      })
      const own = fresh()
      yield* Effect.gen(function* () {
        const store = yield* MemoryStore.MemoryStore
        yield* store.add(own, { text: "first" })
        for (let turns = 0; turns < 12; turns++) {
          yield* store.search(own, {})
          const fiber = yield* Effect.forkChild(store.add(own, { text: `tea ${turns}` }))
          for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          const stored = yield* Stream.runCollect(store.facts(own))
          assert.sameMembers(texts(yield* store.search(own, { limit: 100 })), texts([...stored]))
        }
      }).pipe(Effect.provide(Layer.provide(MemoryStore.layer, slow)))
    })
  )

  it.effect("concurrent writers leave an index with all of their facts", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.search(own, {})
        yield* Effect.forEach(
          Array.from({ length: 40 }, (_, at) => at),
          (at) => Effect.andThen(store.add(own, { text: `tea ${at}` }), store.search(own, { text: "tea" })),
          { concurrency: 8 }
        )
        assert.strictEqual((yield* store.search(own, { text: "tea", limit: 100 })).length, 40)
      })
    )
  )

  it.effect("remember and recall find by meaning and by words; an invalid fact is not sent to the model", () =>
    Effect.gen(function* () {
      const own = fresh()
      yield* MemoryStore.remember(own, { text: "Ada drinks tea" })
      yield* MemoryStore.remember(own, { text: "Ada lives in Oslo" })
      yield* MemoryStore.remember(own, { text: "The team deploys on Fridays" })
      assert.strictEqual((yield* MemoryStore.recall(own, "which beverage"))[0]?.text, "Ada drinks tea")
      assert.strictEqual((yield* MemoryStore.recall(own, "Norway", { limit: 1 }))[0]?.text, "Ada lives in Oslo")
      const store = yield* MemoryStore.MemoryStore
      yield* store.add(own, { text: "the beverage budget is spent" })
      const both = yield* MemoryStore.recall(own, "beverage", { limit: 2 })
      assert.deepStrictEqual(texts(both), ["Ada drinks tea", "the beverage budget is spent"])
      const before = asked.length
      yield* failure(MemoryStore.remember(own, { text: "x".repeat(5000) }))
      assert.strictEqual(asked.length, before)
    }).pipe(Effect.provide(Layer.merge(MemoryStore.layer, Embeddings)))
  )

  it.effect("reports facts in another format as corrupt", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const { table } = yield* Storage.Storage
        for (const value of ["no JSON", "{}", `{"id":1}`]) {
          const own = fresh()
          yield* table("facts").put(own, [{ key: "k", value }])
          const error = yield* failure(store.search(own, {}))
          assert.include(String(error), "can't be read")
        }
      })
    )
  )
})
