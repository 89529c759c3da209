/** The nearest of many facts are found by signatures. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { MemoryStore, Storage } from "effect-deepagents/stores"
import * as Vectors from "../../src/support/store/vectors.ts"

const own = "tenant/1"

/** Stores facts with vectors. Of more than a million numbers, searches compare signatures first. */
const storeMany = Effect.fnUntraced(function* (count: number, dimensions: number) {
  const { table } = yield* Storage.Storage
  let seed = 7
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff - 0.5
  const shiftVector = (vector: ReadonlyArray<number>, distance: number) =>
    vector.map((value) => value + random() * distance)
  // In a narrow cone with clusters, as models make vectors.
  const clusters = Array.from({ length: 60 }, () =>
    shiftVector(
      Array.from({ length: dimensions }, () => 1),
      1
    )
  )
  const facts = Array.from({ length: count }, (_, at) => ({
    id: `f${at}`,
    at,
    vector: shiftVector(clusters[at % 60] ?? [], 0.5)
  }))
  yield* table("facts").put(
    own,
    facts.map(({ id, at }) => ({
      key: id,
      value: JSON.stringify({
        id,
        text: id,
        category: at % 60 === 7 ? "few" : at % 10 === 0 ? "a" : "b",
        at,
        metadata: {}
      })
    }))
  )
  yield* table("vectors").put(
    own,
    facts.map(({ id, vector }) => ({
      key: id,
      value: Vectors.encode(Vectors.unit(vector) ?? new Float32Array())
    }))
  )
  const exact = (wanted: ReadonlyArray<number>, some = facts) => {
    const cosine = (vector: ReadonlyArray<number>) =>
      vector.reduce((sum, value, index) => sum + value * (wanted[index] ?? 0), 0) /
      Math.hypot(...vector) /
      Math.hypot(...wanted)
    return some
      .map(({ id, vector }) => ({ id, similarity: cosine(vector) }))
      .sort((left, right) => right.similarity - left.similarity)
      .slice(0, 10)
  }
  const idsOf = Effect.map((hits: ReadonlyArray<{ readonly fact: MemoryStore.Fact }>) =>
    hits.map(({ fact }) => fact.id)
  )
  /** The share of the ten nearest that a search finds. */
  const shareOf = (wanted: ReadonlyArray<number>, ids: ReadonlyArray<string>, some = facts) =>
    exact(wanted, some).filter(({ id }) => ids.includes(id)).length / 10
  return { facts, shiftVector, exact, shareOf, store: yield* MemoryStore.MemoryStore, idsOf }
})

const provideStore = <A, E>(body: Effect.Effect<A, E, MemoryStore.MemoryStore | Storage.Storage>) =>
  body.pipe(Effect.provide(MemoryStore.layer), Effect.provide(Storage.layerMemory))

it.effect("nearest of many facts are nearly those of a comparison of all, also after changes", () =>
  provideStore(
    Effect.gen(function* () {
      const { exact, facts, idsOf, shareOf, shiftVector, store } = yield* storeMany(4_200, 256)
      // A vector on the other side, which moves to a query later.
      const moved = yield* store.add(own, {
        text: "moved",
        vector: shiftVector(
          Array.from({ length: 256 }, () => -1),
          0.1
        )
      })
      let found = 0
      for (const { vector } of facts.slice(100, 110)) {
        const wanted = shiftVector(vector, 0.3)
        for (const category of [undefined, "b"]) {
          const ids = yield* idsOf(store.nearest(own, wanted, { category }))
          const allowed = category === undefined ? facts : facts.filter(({ at }) => at % 60 !== 7 && at % 10 !== 0)
          assert.strictEqual(ids.length, 10)
          found += shareOf(wanted, ids, allowed)
        }
      }
      assert.isAbove(found / 20, 0.98)
      const wanted = shiftVector(facts[77]?.vector ?? [], 0.3)
      const [first = "", second] = exact(wanted).map(({ id }) => id)
      yield* store.remove(own, first)
      assert.strictEqual((yield* idsOf(store.nearest(own, wanted)))[0], second)
      assert.notInclude(yield* idsOf(store.nearest(own, wanted)), moved.id)
      yield* store.add(own, { text: "moved", vector: wanted })
      assert.strictEqual((yield* idsOf(store.nearest(own, wanted)))[0], moved.id)
    })
  )
)

it.effect("nearest of many facts are as exact while another search signs them, and after it is interrupted", () =>
  provideStore(
    Effect.gen(function* () {
      const { facts, idsOf, shareOf, shiftVector, store } = yield* storeMany(12_000, 100)
      // A category with few facts is compared exactly: this reads the vectors, and signs none.
      yield* store.nearest(own, facts[0]?.vector ?? [], { category: "few" })
      const wanted = facts.slice(200, 208).map(({ vector }) => shiftVector(vector, 0.3))
      const first = yield* Effect.forkChild(store.nearest(own, wanted[0] ?? []), { startImmediately: true })
      const rest = yield* Effect.forkChild(
        Effect.forEach(wanted, (vector) => idsOf(store.nearest(own, vector)), { concurrency: "unbounded" })
      )
      for (let turn = 0; turn < 4; turn++) yield* Effect.yieldNow
      yield* Fiber.interrupt(first)
      const found = yield* Fiber.join(rest)
      const shares = found.map((ids, at) => shareOf(wanted[at] ?? [], ids))
      assert.isAbove(shares.reduce((sum, share) => sum + share, 0) / shares.length, 0.98)
      assert.isAbove(shareOf(wanted[0] ?? [], yield* idsOf(store.nearest(own, wanted[0] ?? []))), 0.8)
    })
  )
)
