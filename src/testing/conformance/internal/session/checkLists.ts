/** Checks ids, metadata, lists and searches, with hostile names, all scripts, and long threads. */
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { byTime, type Request } from "../../../../core/Approval.ts"
import type { JsonObject } from "../../../../core/Json.ts"
import type { SessionError } from "../../../../core/SessionError.ts"
import type { Listing, Service } from "../../../../core/SessionStore.ts"
import { assert, fails, expect } from "../assert.ts"
import { append, readAll, answer, calls, entry, readIds, result, type Rules, human, step } from "./common.ts"

const paths = ["a/b", "a_b", "a-b", "a%2Fb", "a\\b", "A/B", "a", "A", ".", "..", "../a", "/etc/passwd", "~"]
const reserved = ["con", "NUL", "aux.", "*", "?", "__proto__", "constructor", "null", "{}", "0", "-1"]
const quoted = ["'; --", '"', "$(x)", " ", "a ", " a"]
const unicode = ["é", "e\u0301", "ß", "ss", "İ", "i", "ı", "日本", "😀", "𝒶".repeat(256)]
const long = ["a".repeat(512), `${"a".repeat(511)}b`, "A".repeat(512)]
const distinct = [...paths, ...reserved, ...quoted, ...unicode, ...long]

const hostileIds = Effect.fnUntraced(function* (store: Service) {
  for (const [index, threadId] of distinct.entries()) {
    yield* store.create({ threadId, metadata: { index } })
    yield* append(store, threadId, human(`entry-${index}`, `text ${index}`))
  }
  for (const [index, threadId] of distinct.entries()) {
    const thread = yield* store.info(threadId)
    yield* expect([thread.threadId, thread.metadata], [threadId, { index }], "each id is a thread of its own")
    yield* expect(yield* readIds(store, threadId), [`entry-${index}`], "… with entries of its own")
  }
  const listed = yield* pagesOf((cursor) => store.list({ limit: 10, ...cursor }))
  yield* expect(listed.map(({ threadId }) => threadId).toSorted(), distinct.toSorted(), "the list has each thread once")
  for (const threadId of ["", "x".repeat(513), "a\u0000b", "a\nb", "\ud800", "a\u007f", "a\u2028b"]) {
    const name = JSON.stringify(threadId).slice(0, 40)
    yield* fails(store.create({ threadId }), `the id ${name}`, "InvalidId")
    yield* fails(store.info(threadId), `a thread with the id ${name}`, "NotFound")
  }
  yield* fails(store.create({ threadId: "a/b" }), "creating twice", "AlreadyExists")
  const random = yield* store.create()
  yield* assert(random.threadId.length > 10, "a thread without an id gets one", random)
})

const pagesOf = Effect.fnUntraced(function* <A>(
  page: (cursor: { readonly cursor?: string | undefined }) => Effect.Effect<Listing<A>, SessionError>
): Effect.fn.Return<ReadonlyArray<A>, SessionError> {
  const items: Array<A> = []
  let next: string | null = null
  do {
    const part: Listing<A> = yield* page(next === null ? {} : { cursor: next })
    items.push(...part.items)
    next = part.next
  } while (next !== null)
  return items
})

// Parsed, since `__proto__` in a literal is no key.
const hostile: ReadonlyArray<JsonObject> = [
  Object.fromEntries([["__proto__", { polluted: true }]]),
  { "": "", "a.b": 1, a: { b: 1 }, "$.a": "'\"", "x' OR 1=1 --": "%_" },
  { name: "Ünïcödé 😀 \u0000 \u2028", list: [1, [2, { three: null }]], no: false }
]

const metadata = Effect.fnUntraced(function* (store: Service) {
  for (const [index, value] of hostile.entries()) {
    const threadId = `t${index}`
    const thread = yield* store.create({ threadId, metadata: value })
    yield* expect(Object.entries(thread.metadata), Object.entries(value), "metadata come back as they were given")
    for (const [key, wanted] of Object.entries(value)) {
      const where: JsonObject = Object.fromEntries([[key, wanted]])
      const page = yield* store.list({ where })
      yield* expect(
        page.items.map((one) => one.threadId),
        [threadId],
        `the thread that has ${JSON.stringify(where)}`
      )
    }
  }
  yield* expect((yield* store.list({ where: { a: { b: "1" } } })).items, [], '1 is not "1"')
  yield* expect((yield* store.list({ where: { toString: 1 } })).items, [], "what every object has is no metadata")
  const both = yield* store.list({ where: { "a.b": 1, "": "" } })
  yield* expect(both.items.length, 1, "all that is asked for must be there, in any order")
  const described = yield* store.describe("t1", { user: "ada" })
  yield* expect(described.metadata, { user: "ada" }, "metadata are replaced")
  yield* expect((yield* store.list({ where: { "a.b": 1 } })).items, [], "what was replaced is found no more")
  yield* expect((yield* store.list({ where: { user: "ada" } })).items.length, 1, "what replaced it is found")
  const large = { text: "x".repeat(70_000) }
  yield* fails(store.create({ threadId: "large", metadata: large }), "70,000 characters of metadata", "InvalidEntry")
  yield* fails(store.describe("none", {}), "describing what is not there", "NotFound")
})

const lists = Effect.fnUntraced(function* (store: Service) {
  const names = Array.range(1, 7).map((n) => `t${n}`)
  yield* Effect.forEach(names, (threadId, n) => store.create({ threadId, metadata: { odd: n % 2 === 0 } }))
  // At least a millisecond apart.
  yield* Effect.sleep("3 millis")
  yield* append(store, "t3", human("1", "x"))
  yield* Effect.sleep("3 millis")
  yield* store.describe("t5", { odd: true })
  const listed = yield* pagesOf((cursor) => store.list({ limit: 2, ...cursor }))
  yield* expect(
    listed.slice(0, 2).map(({ threadId }) => threadId),
    ["t5", "t3"],
    "what changed last comes first"
  )
  yield* expect(listed.map(({ threadId }) => threadId).toSorted(), names, "pages have each thread once")
  const odd = yield* pagesOf((cursor) => store.list({ limit: 1, where: { odd: true }, ...cursor }))
  yield* expect(odd.map(({ threadId }) => threadId).toSorted(), ["t1", "t3", "t5", "t7"], "pages of some")
  yield* fails(store.list({ cursor: "nonsense" }), "a cursor that is none", "InvalidPoint")
})

const searches = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  yield* append(
    store,
    "t",
    human("1", "How do I deploy the Straßen-service?"),
    answer("2", "Deployment: run make deploy-all")
  )
  yield* Effect.sleep("3 millis")
  yield* store.create({ threadId: "u" })
  yield* append(
    store,
    "u",
    human("3", "私は東京に住んでいます"),
    human("4", 'ДЕПЛОЙ завтра. "quoted" AND (NOT x) * ^'),
    step("5")
  )
  const findThreads = (text: string) =>
    Effect.map(store.search(text), ({ items }) => items.map(({ entryId }) => entryId).toSorted())
  const expected: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["deploy", ["1", "2"]],
    ["DEPLOY", ["1", "2"]],
    ["deploym", ["2"]],
    ["ploy", []],
    ["make deploy", ["2"]],
    ["deploy make", ["2"]],
    ["deploy-all", ["2"]],
    ["all-deploy", []],
    ["straßen", ["1"]],
    ["東京", ["3"]],
    ["京東", []],
    ["деплой", ["4"]],
    ['"quoted"', ["4"]],
    ["AND", ["4"]],
    ["* OR deploy", []],
    ['NOT ( "', ["4"]],
    ["words:deploy", []],
    ["", []],
    ["***", []],
    ["x\u0000y", []],
    ["deploy ".repeat(20_000), ["1", "2"]],
    ["make deploy ".repeat(20_000), ["2"]],
    ["deploy-all-".repeat(20_000), []]
  ]
  for (const [text, entries] of expected) {
    yield* expect(yield* findThreads(text), entries, `a search for ${JSON.stringify(text.slice(0, 40))}`)
  }
  const [newest] = (yield* store.search("d")).items
  yield* expect(newest?.threadId, "t", "what is said is found by the beginning of a word")
  const paged = yield* pagesOf((cursor) => store.search("deploy", { limit: 1, ...cursor }))
  yield* expect(paged.map(({ entryId }) => entryId).toSorted(), ["1", "2"], "pages have each hit once")
  yield* expect(paged[0]?.role, (yield* store.search("deploy", { limit: 1 })).items[0]?.role, "a hit says who spoke")
  yield* assert(paged[0]?.excerpt.toLowerCase().includes("deploy") === true, "a hit shows the text", paged)
  yield* expect((yield* store.search("deploy", { threadId: "u" })).items, [], "a search of one thread")
  yield* store.describe("u", { owner: { id: 1 } })
  const findOf = (text: string, where: JsonObject) =>
    Effect.map(store.search(text, { where }), ({ items }) => items.map(({ entryId }) => entryId).toSorted())
  yield* expect(yield* findOf("d", { owner: { id: 1 } }), [], "a search of threads with metadata")
  yield* expect(yield* findOf("東京", { owner: { id: 1 } }), ["3"], "a search of threads with metadata finds theirs")
  yield* expect(yield* findOf("東京", { owner: { id: 2 } }), [], "a search of threads with other metadata")
  yield* expect(
    (yield* store.search("東京", { threadId: "u", where: { owner: 2 } })).items,
    [],
    "a search of one thread with other metadata"
  )
  yield* store.rewind("t", "1")
  yield* expect(yield* findThreads("deployment"), ["2"], "branches that were left are found")
  yield* store.delete("t")
  yield* expect(yield* findThreads("deploy"), [], "what was removed is not found")
  yield* store.delete("u")
  yield* store.create({ threadId: "v" })
  yield* append(store, "v", human("6", "said after something was removed"))
  yield* expect(yield* findThreads("removed"), ["6"], "what is said after that is found")
  yield* fails(store.search("x", { cursor: "[1]" }), "a cursor that is none", "InvalidPoint")
})

/** A stored request of a suspended run. */
const request = (id: string, at: number, rule?: string): Request => ({
  id,
  runId: "r",
  callId: "c",
  path: ["clerk"],
  toolName: "look",
  arguments: { text: "\u0000 \ud83d\ude00 '" },
  description: "Looks",
  allow: ["approve", "reject"],
  at,
  ...(rule === undefined ? {} : { rule })
})

const suspended = (id: string, messageId: string, requests: ReadonlyArray<Request>, decided: ReadonlyArray<string>) =>
  entry(id, {
    _tag: "State",
    slot: "suspension",
    value: {
      messageId,
      requests: [...requests, request("soon", 0, byTime)],
      decisions: decided.map((one) => ({ _tag: "Approve", id: one })),
      waiting: [],
      answers: [],
      unknown: []
    }
  })

const waits = Effect.fnUntraced(function* (store: Service) {
  const waiting = Effect.map(
    pagesOf((cursor) => store.waiting({ limit: 1, ...cursor })),
    (list) => list.map((one) => `${one.threadId} ${one.request.id}`)
  )
  for (const threadId of ["t", "u", "idle"]) yield* store.create({ threadId })
  yield* expect(yield* waiting, [], "nothing waits in new threads")
  yield* append(store, "idle", human("1", "hello"))
  const [lateRequest, earlyRequest] = [request("late", 20.5), request("early", 10)]
  yield* append(store, "t", calls("1", "c"), suspended("2", "m-1", [lateRequest, earlyRequest], []))
  yield* append(store, "u", calls("1", "c"))
  yield* append(store, "u", suspended("2", "m-1", [request("mine", 10), request("decided", 0)], ["decided"]), step("3"))
  yield* expect(yield* waiting, ["t early", "u mine", "t late"], "open requests are listed, the oldest first")
  yield* expect(
    yield* store.waitingFor("late"),
    { threadId: "t", request: lateRequest },
    "a request is found by its id"
  )
  for (const id of ["decided", "soon", "none", "", "\ud800"]) {
    yield* expect(yield* store.waitingFor(id), undefined, `nothing waits by the id ${JSON.stringify(id)}`)
  }
  yield* expect((yield* store.waiting({ threadId: "u" })).items.length, 1, "what one thread waits for")
  yield* expect((yield* store.waiting({ threadId: "none" })).items, [], "a thread that is not there waits for nothing")
  yield* store.import(store.export("t"), { threadId: "copy" })
  yield* expect((yield* store.waitingFor("early"))?.threadId, "copy", "an imported thread waits as well")
  yield* store.delete("copy")
  yield* store.archive("t")
  yield* expect(
    [yield* waiting, yield* store.waitingFor("late")],
    [["u mine"], undefined],
    "archived threads are left out"
  )
  yield* store.unarchive("t")
  yield* expect(yield* waiting, ["t early", "u mine", "t late"], "… until they are unarchived")
  yield* append(store, "t", suspended("3", "m-1", [lateRequest, earlyRequest], ["early"]))
  yield* expect(yield* waiting, ["u mine", "t late"], "what was decided on is gone")
  yield* append(store, "u", human("4", "something else"))
  yield* expect(yield* waiting, ["t late"], "requests are gone when something else is said")
  yield* append(store, "t", result("4", "c"))
  yield* expect(yield* waiting, [], "… and when every call has its result")
  yield* append(store, "t", calls("5", "d"), suspended("6", "m-5", [lateRequest], []))
  yield* expect(yield* waiting, ["t late"], "a later turn waits")
  yield* store.rewind("t", "4")
  yield* expect(yield* waiting, [], "a thread that was rewound to before it waits no more")
  yield* append(store, "t", calls("7", "e"), suspended("8", "m-7", [lateRequest], []))
  yield* store.delete("t")
  yield* expect(yield* waiting, [], "what was removed is gone")
  yield* fails(store.waiting({ cursor: "nonsense" }), "a cursor that is none", "InvalidPoint")
})

const count = 10_000

const longThreads = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t" })
  let leaf: string | null = null
  for (let start = 0; start < count; start += 500) {
    const entries = Array.range(start, start + 499).map((n) => human(`e${n}`, `message number${n}`))
    leaf = (yield* store.append("t", { leaf, entries })).id
  }
  yield* expect(yield* store.leaf("t"), { id: `e${count - 1}`, step: count }, "the leaf of a long thread")
  const entries = yield* readAll(store, "t")
  const isWhole = entries.length === count && entries.every(({ id }, index) => id === `e${index}`)
  yield* assert(isWhole, "a long thread is whole, in order", entries.length)
  yield* expect((yield* store.load("t", { limit: 1_000_000 })).entries.length, count, "a page is bounded")
  const fork = yield* store.fork("t", { threadId: "f", at: "e5000" })
  yield* expect(fork.leaf.step, 5001, "a fork of a long thread")
  yield* expect((yield* store.search("number7777")).items[0]?.entryId, "e7777", "a search in a long thread")
  yield* expect(yield* Stream.runCount(store.export("t")), count + 1, "an export of a long thread")
  const copy = yield* store.import(store.export("t"), { threadId: "copy" })
  yield* expect(copy.leaf, { id: `e${count - 1}`, step: count }, "an import of a long thread")
})

export const listRules: Rules = [
  ["ids never collide or lead elsewhere", hostileIds],
  ["metadata are kept and found, whatever is in them", metadata],
  ["lists are paged, what changed last first", lists],
  ["what waits is listed, the oldest first, and nothing that waits no more", waits],
  ["messages are found by their words, in any script", searches],
  ["a thread of 10,000 entries is read, forked, searched and exported", longThreads]
]
