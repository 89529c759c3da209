/** Checks pages, rewinds, forks, labels, archived and removed threads, exports. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Service } from "../../../../core/SessionStore.ts"
import { assert, fails, expect } from "../assert.ts"
import { append, readAll, answer, calls, readIds, result, type Rules, human, step } from "./common.ts"

/** A thread with a question, two calls with results, and an answer. */
const turn = (prefix: string) => [
  human(`${prefix}-said`, `question ${prefix}`),
  step(`${prefix}-1`),
  calls(`${prefix}-called`, `${prefix}-a`, `${prefix}-b`),
  step(`${prefix}-2`),
  result(`${prefix}-a`, `${prefix}-a`),
  result(`${prefix}-b`, `${prefix}-b`),
  step(`${prefix}-3`),
  answer(`${prefix}-answered`, `answer ${prefix}`)
]
const inside = ["x-called", "x-2", "x-a"]
const between = ["x-said", "x-1", "x-b", "x-3", "x-answered"]

const pages = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* expect(yield* store.load("t"), { entries: [], next: null }, "a new thread has no entries")
  yield* append(store, "t", ...turn("x"))
  const whole = yield* store.load("t")
  yield* expect(whole.next, null, "a page with the first entry is the last one")
  for (const limit of [1, 3, 4, 8, 100]) {
    yield* expect(yield* readAll(store, "t", limit), whole.entries, `pages of ${limit} are the same path`)
  }
  const page = yield* store.load("t", { limit: 3 })
  yield* expect(
    page.entries.map(({ id }) => id),
    ["x-b", "x-3", "x-answered"],
    "the first page ends with the leaf, oldest first"
  )
  yield* expect(page.next, "x-a", "the next page goes on with the entry before")
  yield* expect((yield* store.load("t", { limit: 0 })).entries.length, 1, "a page has an entry at least")
  yield* fails(store.load("t", { from: "none" }), "a page from what is not there", "InvalidPoint")
  yield* fails(store.load("none"), "loading a thread that is not there", "NotFound")
})

const rewinds = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* append(store, "t", ...turn("w"), ...turn("x"))
  const before = yield* readAll(store, "t")
  for (const id of inside) {
    const reason = yield* fails(store.rewind("t", id), `rewinding to ${id}, inside of a group,`, "InvalidPoint")
    yield* expect(reason.entry, id, "the point that is refused")
  }
  yield* fails(store.rewind("t", "none"), "rewinding to what is not there", "InvalidPoint")
  for (const id of between) {
    const leaf = yield* store.rewind("t", id)
    yield* expect(leaf, { id, step: before.findIndex((one) => one.id === id) + 1 }, "rewinding gives the new leaf")
    yield* expect(
      yield* readIds(store, "t"),
      before.slice(0, leaf.step).map((one) => one.id),
      `the path to ${id}`
    )
  }
  yield* store.rewind("t", "w-answered")
  const stale = store.append("t", { leaf: "x-answered", entries: [human("late", "late")] })
  yield* fails(stale, "whoever still writes behind the old leaf", "Conflict")
  yield* append(store, "t", human("y", "another way"))
  yield* expect((yield* readIds(store, "t")).slice(-2), ["w-answered", "y"], "the thread goes on as a branch")
  const branch = yield* store.load("t", { from: "x-answered", limit: 100 })
  yield* expect(branch.entries, before, "the branch that was left is still there")
  yield* store.rewind("t", "x-answered")
  yield* expect(yield* readAll(store, "t"), before, "… and can be gone back to")
  yield* expect(yield* store.rewind("t", null), { id: null, step: 0 }, "the beginning is a point, too")
  yield* expect(yield* readIds(store, "t"), [], "nothing is before the beginning")
  yield* append(store, "t", human("z", "anew"))
  yield* expect(yield* readIds(store, "t"), ["z"], "a second beginning")
})

const branches = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* append(store, "t", ...turn("w"), ...turn("x"))
  const before = yield* readAll(store, "t")
  const leaf = "x-answered"
  const batch = { leaf, behind: "w-3", entries: [human("y", "another way"), step("y-1")] }
  const inside = store.append("t", { ...batch, behind: "x-called" })
  yield* fails(inside, "an append inside of a group", "InvalidPoint")
  yield* fails(store.append("t", { ...batch, behind: "none" }), "an append behind what is not there", "InvalidPoint")
  yield* fails(store.append("t", { ...batch, leaf: "x-3" }), "an append elsewhere with another leaf", "Conflict")
  yield* fails(store.append("none", batch), "an append elsewhere in no thread", "NotFound")
  yield* expect(yield* readAll(store, "t"), before, "what was refused moves nothing")
  const there = yield* store.append("t", batch)
  yield* expect(there, { id: "y-1", step: 9 }, "an append elsewhere gives the new leaf")
  yield* expect(yield* store.leaf("t"), there, "… and moves the leaf there")
  yield* expect((yield* readIds(store, "t")).slice(-3), ["w-3", "y", "y-1"], "the path goes by where it was put")
  yield* expect(yield* store.append("t", batch), there, "appending the same again gives the same")
  const other = store.append("t", { ...batch, behind: "w-answered" })
  yield* fails(other, "what is there, but elsewhere", "Conflict")
  yield* expect((yield* store.load("t", { from: leaf })).entries, before, "the branch that was left is still there")
  yield* store.append("t", { leaf: "y-1", behind: null, entries: [human("z", "anew")] })
  yield* expect(yield* store.leaf("t"), { id: "z", step: 1 }, "a second beginning")
  yield* store.fork("t", { threadId: "f" })
  const shared = yield* store.append("f", { leaf: "z", behind: leaf, entries: [human("more", "in the fork")] })
  yield* expect(shared, { id: "more", step: 17 }, "a fork goes on behind what it shares")
  yield* expect(yield* store.leaf("t"), { id: "z", step: 1 }, "… without the other")
})

const forks = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t", metadata: { user: "ada" } })
  yield* append(store, "t", ...turn("x"))
  for (const id of inside) yield* fails(store.fork("t", { at: id }), `a fork inside of a group, ${id},`, "InvalidPoint")
  const fork = yield* store.fork("t", { threadId: "f", at: "x-3" })
  yield* expect(fork.origin, { threadId: "t", entryId: "x-3" }, "a fork says where it comes from")
  yield* expect(fork.metadata, { user: "ada" }, "a fork takes metadata over")
  yield* expect(fork.leaf, { id: "x-3", step: 7 }, "the leaf of a fork")
  yield* append(store, "t", human("later", "in the first"))
  yield* append(store, "f", human("later", "in the fork"), answer("f-1", "yes"))
  const first = yield* readAll(store, "t")
  const second = yield* readAll(store, "f")
  yield* expect(second.slice(0, 7), first.slice(0, 7), "a fork shares what was before it")
  yield* expect(
    second.slice(7).map(({ id, parentId }) => [parentId, id]),
    [
      ["x-3", "later"],
      ["later", "f-1"]
    ],
    "a fork goes on by itself, whatever ids the first one uses since"
  )
  yield* fails(store.append("f", { leaf: "f-1", entries: [human("x-said", "x")] }), "an id it shares", "InvalidEntry")
  yield* fails(store.append("t", { leaf: "later", entries: [human("x-said", "x")] }), "an id of it", "InvalidEntry")
  const secondFork = yield* store.fork("f", { threadId: "g", metadata: {} })
  yield* expect(secondFork.metadata, {}, "a fork takes the metadata that it is given")
  yield* store.rewind("g", "x-answered")
  yield* expect((yield* readIds(store, "g")).length, 8, "a fork may go to a branch that was there when it was made")
  yield* fails(store.rewind("f", "none"), "a fork can't go where nothing is", "InvalidPoint")
  yield* store.delete("t")
  yield* fails(store.info("t"), "a removed thread", "NotFound")
  yield* expect(yield* readAll(store, "f"), second, "a fork keeps what it shares with a thread that was removed")
  yield* store.create({ threadId: "t" })
  yield* expect(yield* readIds(store, "t"), [], "a removed thread's id is free, and what it had is gone")
  yield* store.delete("f")
  yield* expect((yield* readIds(store, "g")).length, 8, "… also when the one between is removed")
  yield* store.delete("g")
  yield* fails(store.fork("t", { threadId: "t" }), "a fork with an id that is taken", "AlreadyExists")
  const empty = yield* store.fork("t")
  yield* assert(empty.threadId !== "t" && empty.leaf.id === null, "an empty thread can be forked", empty)
  yield* store.delete(empty.threadId)
  yield* expect((yield* store.info("t")).threadId, "t", "a thread whose only fork is removed is there")
})

const byName = ([left]: readonly [string, string], [right]: readonly [string, string]) => (left < right ? -1 : 1)

const labels = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* append(store, "t", ...turn("x"))
  const { leaf } = yield* store.info("t")
  yield* store.label("t", "here", "x-a")
  yield* store.label("t", "__proto__", "x-said")
  yield* store.label("t", "gone", "x-said")
  yield* store.label("t", "here", "x-b")
  yield* store.label("t", "gone", null)
  const expected = [
    ["__proto__", "x-said"],
    ["here", "x-b"]
  ]
  const names = Effect.map(store.labels("t"), (map) => [...map].toSorted(byName))
  yield* expect(yield* names, expected, "a name is the last entry's that got it, until it is taken away")
  yield* expect(yield* store.leaf("t"), leaf, "a label does not move the leaf: a run that writes goes on")
  yield* append(store, "t", human("y", "more"))
  yield* expect((yield* readIds(store, "t")).length, 9, "a label is not on the path")
  yield* fails(store.label("t", "here", "none"), "a label of what is not there", "InvalidPoint")
  yield* fails(store.label("t", "", "y"), "a label without a name", "InvalidEntry")
  yield* store.fork("t", { threadId: "f" })
  yield* store.label("f", "here", "y")
  yield* expect(yield* names, expected, "a label of a fork is its own")
  yield* expect((yield* store.labels("f")).get("here"), "y", "a fork has labels that it shares, and its own")
})

const archives = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* append(store, "t", human("1", "findable"))
  yield* store.archive("t")
  yield* store.archive("t")
  yield* assert((yield* store.info("t")).archived, "an archived thread says so", "not archived")
  yield* fails(append(store, "t", human("2", "x")), "an append to an archived thread", "Archived")
  yield* fails(store.rewind("t", null), "rewinding an archived thread", "Archived")
  yield* fails(store.label("t", "x", "1"), "a label of an archived thread", "Archived")
  yield* expect(yield* readIds(store, "t"), ["1"], "an archived thread can be read")
  yield* expect((yield* store.list()).items, [], "an archived thread is not in lists")
  yield* expect((yield* store.list({ archived: true })).items.length, 1, "… but among the archived")
  yield* expect((yield* store.search("findable")).items, [], "an archived thread is not found")
  yield* expect((yield* store.search("findable", { archived: true })).items.length, 1, "… but among the archived")
  const fork = yield* store.fork("t", { threadId: "f" })
  yield* assert(!fork.archived, "a fork of an archived thread is not archived", fork)
  yield* store.unarchive("t")
  yield* append(store, "t", human("2", "x"))
  yield* store.delete("t")
  yield* fails(store.delete("t"), "removing twice", "NotFound")
  yield* fails(store.archive("t"), "archiving what is not there", "NotFound")
  yield* fails(Stream.runCollect(store.export("t")), "exporting what is not there", "NotFound")
})

const exports = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "o", metadata: { title: "größer ✓" } })
  yield* append(store, "o", ...turn("w"))
  yield* store.fork("o", { threadId: "t" })
  yield* append(store, "o", human("not in t", "x"))
  yield* append(store, "t", ...turn("x"))
  yield* store.rewind("t", "w-answered")
  yield* append(store, "t", ...turn("y"))
  yield* store.label("t", "top", "x-answered")
  const lines = yield* Stream.runCollect(store.export("t"))
  yield* expect(lines.length, 1 + 8 + 8 + 8 + 1, "a head, and all entries, branches and labels included, each once")
  yield* assert(!lines.some((line) => line.includes("\n")), "a line is a line", lines)
  yield* fails(store.import(Stream.fromIterable(lines)), "an import over a thread", "AlreadyExists")
  const copy = yield* store.import(Stream.fromIterable(lines), { threadId: "copy" })
  const { leaf, metadata } = yield* store.info("t")
  yield* expect([copy.leaf, copy.metadata], [leaf, metadata], "an import stands where the export stood")
  yield* expect(yield* readAll(store, "copy"), yield* readAll(store, "t"), "an import has the same path")
  yield* expect([...(yield* store.labels("copy"))], [["top", "x-answered"]], "an import has the labels")
  yield* store.rewind("copy", "x-answered")
  const secondExport = yield* Stream.runCollect(store.export("copy"))
  yield* expect(secondExport.slice(1), lines.slice(1), "exporting what was imported gives the same lines")
  const broken: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["no lines", []],
    ["no head", lines.slice(1)],
    ["a torn line", [...lines.slice(0, -1), (lines.at(-1) ?? "").slice(0, 20)]],
    ["a missing entry", lines.filter((_, index) => index !== 3)],
    ["an entry twice", [...lines, ...lines.slice(1, 2)]],
    ["another version", lines.map((line) => line.replace('"v":1', '"v":2'))]
  ]
  for (const [name, text] of broken) {
    yield* fails(store.import(Stream.fromIterable(text), { threadId: "b" }), `an import with ${name}`, "InvalidEntry")
  }
  yield* fails(store.info("b"), "nothing is left of an import that failed: the thread", "NotFound")
})

export const treeRules: Rules = [
  ["pages go backwards from the leaf, and are the path", pages],
  ["a thread is rewound to where a turn ends, and branches", rewinds],
  ["what is appended elsewhere moves the leaf there, at once", branches],
  ["a fork shares the past, and nothing after", forks],
  ["labels name entries, and do not move the leaf", labels],
  ["an archived thread is read only, and a removed one gone", archives],
  ["an export is imported as it was; a broken one not at all", exports]
]
