/**
 * Tables: the same on every storage.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Storage } from "effect-deepagents/stores"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { name, onAll } from "./places.ts"

let count = 0
/** A table that nobody used before. */
const fresh = Storage.Storage.use((storage) => Effect.sync(() => storage.table(`t${++count}`)))

onAll((it) => {
  it.effect(
    "returns stored rows, and none of another space or table",
    Effect.fnUntraced(function* () {
      const [one, other] = [yield* fresh, yield* fresh]
      yield* one.put("a", [
        { key: "k", value: "1" },
        { key: "l", value: "2" }
      ])
      yield* one.put("b", [{ key: "k", value: "3" }])
      yield* other.put("a", [{ key: "k", value: "4" }])
      yield* one.put("a", [{ key: "k", value: "5" }])
      assert.deepStrictEqual(
        yield* Effect.all([
          one.get("a", "k"),
          one.get("b", "k"),
          other.get("a", "k"),
          one.get("b", "l"),
          one.get("c", "k")
        ]),
        ["5", "3", "4", undefined, undefined]
      )
      assert.deepStrictEqual(yield* Effect.all([one.count("a"), one.count("b"), one.count("c")]), [2, 1, 0])
      yield* one.clear("a")
      assert.deepStrictEqual(yield* Effect.all([one.count("a"), one.count("b"), other.count("a")]), [0, 1, 1])
      assert.isUndefined(yield* one.get("a", "k"))
    })
  )

  it.effect(
    "stores the last of several rows with one key",
    Effect.fnUntraced(function* () {
      const table = yield* fresh
      yield* table.put("a", [
        { key: "k", value: "1" },
        { key: "k", value: "2" }
      ])
      yield* table.put("a", [])
      assert.deepStrictEqual(yield* table.scan("a", { limit: 10 }), [{ key: "k", value: "2" }])
    })
  )

  it.effect(
    "swaps only an expected value",
    Effect.fnUntraced(function* () {
      const table = yield* fresh
      const steps = [
        [undefined, undefined, true, undefined],
        ["1", "2", false, undefined],
        [undefined, "1", true, "1"],
        [undefined, "2", false, "1"],
        ["2", undefined, false, "1"],
        ["2", "3", false, "1"],
        ["1", "2", true, "2"],
        ["2", undefined, true, undefined],
        [undefined, "1", true, "1"]
      ] as const
      for (const [expected, next, swapped, then] of steps) {
        assert.strictEqual(yield* table.swap("a", "k", expected, next), swapped, `${expected} → ${next}`)
        assert.strictEqual(yield* table.get("a", "k"), then)
      }
    })
  )

  it.effect(
    "of many who swap the same, one does",
    Effect.fnUntraced(function* () {
      const table = yield* fresh
      yield* table.put("a", [{ key: "k", value: "0" }])
      for (let round = 0; round < 5; round++) {
        const swaps = Array.from({ length: 8 }, (_, who) =>
          table.swap("a", "k", `${round}`, `${round + 1}`).pipe(Effect.map((done) => done && who))
        )
        const done = yield* Effect.all(swaps, { concurrency: "unbounded" })
        assert.strictEqual(done.filter((who) => who !== false).length, 1)
      }
    })
  )

  it.effect(
    "scans in the order of code points, in parts, both ways",
    Effect.fnUntraced(function* () {
      const table = yield* fresh
      const keys = ["~", "a", "B", "ä", "ab", "0", "\ufffd", "\u{1f600}", "a b", "日"]
      yield* table.put(
        "s",
        keys.map((key) => ({ key, value: `<${key}>` }))
      )
      const sorted = ["0", "B", "a", "a b", "ab", "~", "ä", "日", "\ufffd", "\u{1f600}"]
      const parts = (reverse: boolean) =>
        Effect.gen(function* () {
          const found: Array<string> = []
          for (;;) {
            const after = found.at(-1)
            const rows = yield* table.scan("s", { limit: 3, reverse, ...(after === undefined ? {} : { after }) })
            assert.isAtMost(rows.length, 3)
            if (rows.length === 0) return found
            for (const { key, value } of rows) assert.strictEqual(value, `<${key}>`)
            found.push(...rows.map(({ key }) => key))
          }
        })
      assert.deepStrictEqual(yield* parts(false), sorted)
      assert.deepStrictEqual(yield* parts(true), sorted.toReversed())
      const between = yield* table.scan("s", { after: "aa", limit: 1 })
      assert.deepStrictEqual(
        between.map(({ key }) => key),
        ["ab"]
      )
      const before = yield* table.scan("s", { after: "aa", limit: 1, reverse: true })
      assert.deepStrictEqual(
        before.map(({ key }) => key),
        ["a b"]
      )
    })
  )

  it.effect(
    "keeps any name and any text apart from any other",
    Effect.fnUntraced(function* () {
      const context = yield* Effect.context<Storage.Storage>()
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.uniqueArray(fc.tuple(name(40), name(40)), {
              minLength: 2,
              maxLength: 8,
              selector: (pair) => JSON.stringify(pair)
            }),
            fc.string({ unit: "binary" }),
            (pairs, text) =>
              Effect.gen(function* () {
                const table = yield* fresh
                const valueOf = (index: number) => JSON.stringify([index, text])
                for (const [index, [space, key]] of pairs.entries())
                  yield* table.put(space, [{ key, value: valueOf(index) }])
                for (const [index, [space, key]] of pairs.entries()) {
                  assert.strictEqual(yield* table.get(space, key), valueOf(index))
                  assert.strictEqual(yield* table.count(space), pairs.filter(([other]) => other === space).length)
                }
              }).pipe(Effect.provide(context), Effect.runPromise)
          ),
          { numRuns: scaled(30) }
        )
      )
    })
  )

  it.effect(
    "puts and takes thousands of rows at once",
    Effect.fnUntraced(function* () {
      const table = yield* fresh
      const rows = Array.from({ length: 2500 }, (_, index) => ({ key: `${index}`.padStart(6, "0"), value: `${index}` }))
      yield* table.put("a", rows)
      assert.strictEqual(yield* table.count("a"), 2500)
      assert.deepStrictEqual(yield* table.scan("a", { after: "002497", limit: 10 }), rows.slice(2498))
    })
  )
})
