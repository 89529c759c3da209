/** Checks appends: atomic, once, after the expected leaf, also with parallel writers. */
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import type { Service } from "../../../../core/SessionStore.ts"
import { assert, fails, expect } from "../assert.ts"
import { append, readAll, answer, calls, entry, readIds, result, type Rules, human, step } from "./common.ts"

const keepsWhatItIsGiven = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  const batch = [
    entry("0", { _tag: "RunStarted", runId: "r", agent: "a" }),
    human("1", "what is \ud83d\ude00 \u0000 \ud800 \u2028 \"'\n?"),
    calls("2", "c1", "c2"),
    entry("3", { _tag: "State", slot: "__proto__", value: { constructor: [null, 1.5, "x", { "": false }] } }),
    result("4", "c1"),
    result("5", "c2"),
    entry("6", { _tag: "Compaction", tokensBefore: 10, tokensAfter: 2 }),
    answer("7", "it is"),
    entry("8", { _tag: "RunSettled", runId: "r", outcome: "completed" }),
    entry("9", {
      _tag: "Part",
      turn: "u",
      model: "m",
      pieces: [
        { _tag: "Text", from: 3, text: "\ud83d\ude00 \u0000" },
        { _tag: "Call", id: "c3", name: "look", from: 0, text: '{"at":"' }
      ]
    }),
    step("10")
  ]
  const leaf = yield* store.append("t", { leaf: null, entries: batch })
  yield* expect(leaf, { id: "10", step: 11 }, "an append gives the leaf, and the number of entries to it")
  const entries = yield* readAll(store, "t")
  yield* expect(
    entries.map(({ entry: value, id, parentId }) => ({ id, parentId, value })),
    batch.map(({ entry: value, id }, index) => ({ id, parentId: batch[index - 1]?.id ?? null, value })),
    "entries come back as they were given, each behind the one before it"
  )
  yield* expect(yield* store.leaf("t"), leaf, "the leaf is what the append gave")
})

const refusesAnotherLeaf = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* append(store, "t", human("1", "one"), step("2"))
  const stale = store.append("t", { leaf: "1", entries: [human("3", "stale")] })
  const conflict = yield* fails(stale, "an append behind what is not the leaf", "Conflict")
  yield* expect(conflict, { _tag: "Conflict", expected: "1", found: "2" }, "a conflict names both leaves")
  const early = store.append("t", { leaf: null, entries: [human("3", "early")] })
  yield* expect((yield* fails(early, "an append at the beginning", "Conflict")).found, "2", "what is found there")
  const none = store.append("t", { leaf: "1", entries: [] })
  yield* fails(none, "an append of nothing behind what is not the leaf", "Conflict")
  yield* expect(yield* readIds(store, "t"), ["1", "2"], "what was refused is not there")
})

const happensOnce = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  const batch = { leaf: null, entries: [human("1", "one"), step("2")] }
  const first = yield* store.append("t", batch)
  yield* expect(yield* store.append("t", batch), first, "appending the same again gives the same")
  yield* store.append("t", { leaf: "2", entries: [human("3", "more")] })
  yield* expect(yield* store.append("t", batch), first, "… also when the thread went on")
  yield* expect(yield* readIds(store, "t"), ["1", "2", "3"], "nothing is doubled")
  const other = store.append("t", { leaf: null, entries: [human("1", "other"), step("2")] })
  yield* fails(other, "other entries with these ids", "Conflict")
  const part = store.append("t", { leaf: "1", entries: [step("2"), human("4", "x")] })
  yield* fails(part, "a batch that is there only in part", "Conflict")
  const reusedId = store.append("t", { leaf: "3", entries: [human("5", "x"), human("1", "one")] })
  yield* fails(reusedId, "an id that is taken", "InvalidEntry")
  const elsewhere = store.append("t", { leaf: "3", entries: batch.entries })
  yield* fails(elsewhere, "what is there behind another entry", "InvalidEntry")
  const twice = store.append("t", { leaf: "3", entries: [human("6", "x"), human("6", "x")] })
  yield* fails(twice, "an id that is there twice", "InvalidEntry")
  yield* expect(yield* readIds(store, "t"), ["1", "2", "3"], "what was refused is not there")
})

const refusesWhatIsNone = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  const problem = { ...entry("1", { _tag: "Compaction", tokensBefore: Number.NaN, tokensAfter: 1 }) }
  const invalid = store.append("t", { leaf: null, entries: [human("0", "fine"), problem] })
  yield* expect((yield* fails(invalid, "what is no entry", "InvalidEntry")).entry, "1", "which one it is")
  for (const id of ["", "x".repeat(129), "a\nb", "\ud800"]) {
    const append = store.append("t", { leaf: null, entries: [human(id, "x")] })
    yield* fails(append, `an entry with the id ${JSON.stringify(id)}`, "InvalidEntry")
  }
  const large = store.append("t", {
    leaf: null,
    entries: [human("0", "fine"), human("1", "x".repeat(16_000_000))]
  })
  const { bytes, limit, what } = yield* fails(large, "16 million characters", "TooLarge")
  yield* expect([bytes > 16_000_000, limit, what], [true, 15 * 1024 * 1024, "entry 1"], "how large what is")
  yield* expect(yield* readIds(store, "t"), [], "nothing of it is stored")
  yield* fails(append(store, "none", human("1", "x")), "an append to a thread that is not there", "NotFound")
  const most = human("0", "y".repeat(15_700_000))
  yield* append(store, "t", most)
  yield* expect((yield* store.load("t")).entries[0]?.entry, most.entry, "the largest entry comes back")
  yield* expect((yield* store.search("nothing")).items, [], "and is searched")
})

const writers = 8
const turns = 12

const oneWinsEachTime = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  const write = (writer: number) =>
    Effect.gen(function* () {
      const mine: Array<string> = []
      let conflicts = 0
      while (mine.length < turns) {
        const id = `${writer}-${mine.length}`
        const leaf = yield* store.leaf("t")
        yield* Effect.yieldNow
        const batch = { leaf: leaf.id, entries: [human(id, id), step(`${id}-step`)] }
        const outcome = yield* Effect.result(store.append("t", batch))
        if (outcome._tag === "Success") mine.push(id)
        else if (outcome.failure.reason._tag === "Conflict") conflicts++
        else return yield* outcome.failure
      }
      return { mine, conflicts }
    })
  const results = yield* Effect.forEach(Array.range(1, writers), write, { concurrency: "unbounded" })
  const path = yield* readIds(store, "t")
  const expected = results.flatMap(({ mine }) => mine.flatMap((id) => [id, `${id}-step`]))
  yield* expect(path.toSorted(), expected.toSorted(), "what was acknowledged is there once, and nothing else is")
  const isWhole = path.every((id, index) => index % 2 === 0 || id === `${path[index - 1]}-step`)
  yield* assert(isWhole, "nothing comes between the entries of one append", path)
  yield* assert(
    results.some(({ conflicts }) => conflicts > 0),
    "writers that were too late got a conflict",
    results.map(({ conflicts }) => conflicts)
  )
})

const sameAtOnce = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  const batch = { leaf: null, entries: [human("1", "one"), step("2")] }
  yield* Effect.forEach(Array.range(1, writers), () => store.append("t", batch), { concurrency: "unbounded" })
  yield* expect(yield* readIds(store, "t"), ["1", "2"], "one append that is sent several times at once happens once")
})

const createdAtOnce = Effect.fnUntraced(function* (store: Service) {
  const outcomes = yield* Effect.forEach(
    Array.range(1, writers),
    (n) => Effect.result(store.create({ threadId: "t", metadata: { n } })),
    { concurrency: "unbounded" }
  )
  const threads = outcomes.flatMap((outcome) => (outcome._tag === "Success" ? [outcome.success] : []))
  yield* expect(threads.length, 1, "one of those who create a thread at once makes it")
  yield* expect((yield* store.info("t")).metadata, threads[0]?.metadata, "the thread is the one that was acknowledged")
})

export const appendRules: Rules = [
  ["an append keeps what it is given, in order", keepsWhatItIsGiven],
  ["an append behind another leaf is a conflict that names both", refusesAnotherLeaf],
  ["an append happens once, however often it is sent", happensOnce],
  ["what is no entry is refused, and nothing beside it stored", refusesWhatIsNone],
  ["8 writers on one thread: one wins each time, nothing is lost or doubled", oneWinsEachTime],
  ["one append sent by 8 at once happens once", sameAtOnce],
  ["8 who create one thread: one makes it", createdAtOnce]
]
