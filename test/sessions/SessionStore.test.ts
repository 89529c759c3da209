import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Schema } from "effect"
import { Agent, AgentState, Journal, Message, SessionError, Tool, ToolContext, Usage } from "effect-deepagents"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { make } from "../../src/sessions/internal/store.ts"
import type { Tables } from "../../src/sessions/internal/tables.ts"
import { makeJournal } from "../../src/sessions/journal.ts"

const agent = Agent.make({ name: "a", prompt: "" })
const human = (text: string): Journal.Entry => ({ _tag: "Message", message: Message.human(text) })
const lost = (threadId: string) => SessionError.make("append", threadId, { _tag: "Unavailable", problem: "lost" })

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))

/** A memory store whose appends go wrong as `around` has it. */
const faulty = (around: (append: SessionStore.Service["append"]) => SessionStore.Service["append"]) =>
  SessionStore.journal.pipe(
    Layer.provideMerge(
      Layer.effect(
        SessionStore.SessionStore,
        Effect.map(SessionStore.SessionStore, (store) => ({ ...store, append: around(store.append) }))
      ).pipe(Layer.provide(MemorySessions.layer))
    )
  )

describe("SessionStore.journal", () => {
  it.effect("a run goes on with the thread's messages, state and usage", () => {
    const count = AgentState.slot("count", { schema: Schema.Finite, initial: 0 })
    const add = Tool.make("add", {
      description: "",
      parameters: { n: Schema.Int },
      execute: Effect.fnUntraced(function* ({ n }) {
        const { state } = yield* ToolContext.ToolContext
        yield* state.update(count, (sum) => sum + n)
        return `${yield* state.get(count)}`
      })
    })
    const adder = Agent.make({ name: "a", prompt: "", tools: [add] })
    const call = (n: number) => TestChatModel.calls([{ name: "add", arguments: { n } }])
    return Effect.gen(function* () {
      const first = yield* Agent.run(adder, "one", { threadId: "t" })
      assert.deepStrictEqual(yield* SessionStore.checkpoint("t"), {
        messages: first.messages,
        state: first.state,
        usage: first.usage,
        rounds: first.rounds,
        spent: first.spent
      })
      const { events } = yield* AgentTest.collect(adder, "two", { threadId: "t" })
      const loaded = events.find((event) => event._tag === "CheckpointLoaded")
      const saved = events.findLast((event) => event._tag === "CheckpointSaved")
      assert.strictEqual(saved?.step, (yield* SessionStore.SessionStore.use((store) => store.leaf("t"))).step)
      assert.isBelow(loaded?.step ?? 0, saved?.step ?? 0)
      const result = yield* Agent.run(adder, "three", { threadId: "t" })
      assert.deepStrictEqual(
        result.messages.map((message) => Message.text(message)),
        ["one", "", "1", "a", "two", "", "3", "b", "three", "c"]
      )
      assert.strictEqual(result.state["count"], 3)
    }).pipe(Effect.provide([TestChatModel.script([call(1), "a", call(2), "b", "c"]), sessions]))
  })

  it.effect("an append whose answer was lost is sent again, and happens once", () => {
    let losing = 3
    const layer = faulty((append) =>
      Effect.fnUntraced(function* (threadId, batch) {
        const leaf = yield* append(threadId, batch)
        if (losing-- > 0) return yield* lost(threadId)
        return leaf
      })
    )
    return Effect.gen(function* () {
      const thread = yield* Journal.Journal.use((journal) => journal.open("t"))
      const fiber = yield* Effect.forkChild(thread.append([human("one"), human("two")]))
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), 2)
      assert.strictEqual(yield* thread.append([human("three")]), 3)
      const checkpoint = yield* SessionStore.checkpoint("t")
      assert.deepStrictEqual(
        checkpoint?.messages.map((message) => Message.text(message)),
        ["one", "two", "three"]
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("the ids of entries only grow, however many there are in a millisecond, and when the clock goes back", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const { open } = makeJournal(store)
      const write = Effect.fnUntraced(function* (at: number, count: number) {
        yield* TestClock.setTime(at)
        const thread = yield* open("t")
        yield* thread.append(Array.from({ length: count }, (_, n) => human(`${n}`)))
      })
      yield* write(1_000_000, 3_000)
      yield* write(1_000_000, 3_000)
      yield* write(999_000, 10)
      yield* write(2_000_000, 10)
      const ids = (yield* store.load("t", { limit: 10_000 })).entries.map(({ id }) => id)
      assert.strictEqual(ids.length, 6_020)
      assert.deepStrictEqual(ids, ids.toSorted())
      const uuid = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/u
      assert.isTrue(ids.every((id) => uuid.test(id)))
      assert.strictEqual(Number.parseInt(ids.at(-1)?.slice(0, 13).replace("-", "") ?? "", 16), 2_000_000)
    }).pipe(Effect.provide(MemorySessions.layer))
  )

  it.effect("entries go behind an id that only looks like one of the journal's", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const { open } = makeJournal(store)
      const leaves = ["ffffffff-ffff-7fff-bfff-ffffffffffff", "ffffffff-ffff-7fff-", "00000000-0000-8000-", "~"]
      for (const id of leaves) {
        yield* store.create({ threadId: id })
        yield* store.append(id, {
          leaf: null,
          entries: [{ id, entry: { _tag: "Message", message: Message.human("a") } }]
        })
        const thread = yield* open(id)
        yield* thread.append([human("b"), human("c")])
        assert.strictEqual((yield* store.leaf(id)).step, 3)
      }
    }).pipe(Effect.provide(MemorySessions.layer))
  )

  it.effect("a store that stays away is given up after a while, and a conflict at once", () => {
    let tried = 0
    const layer = faulty(() => (threadId) => Effect.suspend(() => (tried++, Effect.fail(lost(threadId)))))
    return Effect.gen(function* () {
      const thread = yield* Journal.Journal.use((journal) => journal.open("t"))
      const fiber = yield* Effect.forkChild(Effect.flip(thread.append([human("one")])))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "Unavailable")
      assert.strictEqual(tried, 7)
    }).pipe(Effect.provide(layer))
  })

  it.effect("of two runs on one thread, the later one fails with a conflict", () =>
    Effect.gen(function* () {
      const open = Journal.Journal.use((journal) => journal.open("t"))
      const first = yield* open
      const second = yield* open
      yield* first.append([human("one")])
      const error = yield* Effect.flip(second.append([human("two")]))
      assert.strictEqual(error.reason._tag, "Conflict")
      yield* first.append([human("three")])
    }).pipe(Effect.provide(sessions))
  )

  it.effect("an archived thread can't be run", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      yield* store.create({ threadId: "t" })
      yield* store.archive("t")
      const error = yield* Effect.flip(Agent.run(agent, "go", { threadId: "t" }))
      assert(error._tag === "AgentError" && error.reason._tag === "Thread")
      assert.strictEqual(error.reason.error.reason._tag, "Archived")
    }).pipe(Effect.provide([TestChatModel.script([]), sessions]))
  )

  it.effect("a rewound thread is answered from there; the branch that was left is not seen", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      yield* Agent.run(agent, "one", { threadId: "t" })
      const { id } = yield* store.leaf("t")
      yield* Agent.run(agent, "two", { threadId: "t" })
      yield* store.fork("t", { threadId: "f" })
      yield* store.rewind("t", id)
      const texts = Effect.fnUntraced(function* (threadId: string) {
        const { messages } = yield* Agent.run(agent, "more", { threadId })
        return messages.map((message) => Message.text(message))
      })
      assert.deepStrictEqual(yield* texts("t"), ["one", "1", "more", "3"])
      assert.deepStrictEqual(yield* texts("f"), ["one", "1", "two", "2", "more", "4"])
    }).pipe(Effect.provide([TestChatModel.script(["1", "2", "3", "4"]), sessions]))
  )

  it.effect("leaves out the partial answer of a turn that was asked again", () =>
    Effect.gen(function* () {
      const thread = yield* Journal.Journal.use((journal) => journal.open("t"))
      yield* thread.append([
        human("go"),
        { _tag: "Message", message: Message.ai("half an ans", { stopReason: "interrupted" }) },
        { _tag: "Step", usage: Usage.zero, rounds: 1 }
      ])
      const cut = yield* SessionStore.checkpoint("t")
      assert.strictEqual(cut?.messages.length, 2)
      yield* thread.append([{ _tag: "Message", message: Message.ai("an answer") }])
      const whole = yield* SessionStore.checkpoint("t")
      assert.deepStrictEqual(
        whole?.messages.map((message) => Message.text(message)),
        ["go", "an answer"]
      )
    }).pipe(Effect.provide(sessions))
  )

  it.effect("a thread of nothing has no checkpoint, and none that is not there", () =>
    Effect.gen(function* () {
      yield* SessionStore.SessionStore.use((store) => store.create({ threadId: "t" }))
      assert.isUndefined(yield* SessionStore.checkpoint("t"))
      assert.strictEqual((yield* Effect.flip(SessionStore.checkpoint("u"))).reason._tag, "NotFound")
    }).pipe(Effect.provide(sessions))
  )
})

describe("an append that was refused", () => {
  it.effect("is repeated if the thread is back at its place, and not reported as done", () =>
    Effect.gen(function* () {
      const thread: SessionStore.Thread = {
        threadId: "t",
        leaf: { id: null, step: 0 },
        createdAt: 0,
        updatedAt: 0,
        metadata: {},
        archived: false,
        origin: undefined
      }
      let asked = 0
      const store = make({
        ...absentTables,
        find: () => Effect.succeed(thread),
        entry: () => Effect.undefined,
        append: () => Effect.sync(() => (asked++ === 0 ? { _tag: "Refused", thread } : { _tag: "Done", step: 1 }))
      })
      const entries = [{ id: "1", entry: { _tag: "Message", message: Message.human("1") } }] as const
      assert.deepStrictEqual(yield* store.append("t", { leaf: null, entries }), { id: "1", step: 1 })
      assert.strictEqual(asked, 2)
      const nothing = yield* store.append("t", { leaf: null, entries: [] })
      assert.deepStrictEqual([nothing, asked], [thread.leaf, 2])
    })
  )
})

const absentTables: Tables = {
  insert: () => Effect.die("absent"),
  fork: () => Effect.die("absent"),
  append: () => Effect.die("absent"),
  addLabel: () => Effect.die("absent"),
  move: () => Effect.die("absent"),
  update: () => Effect.die("absent"),
  remove: () => Effect.die("absent"),
  find: () => Effect.die("absent"),
  entry: () => Effect.die("absent"),
  path: () => Effect.die("absent"),
  labels: () => Effect.die("absent"),
  entries: () => Effect.die("absent"),
  list: () => Effect.die("absent"),
  waiting: () => Effect.die("absent"),
  waitingFor: () => Effect.die("absent"),
  search: () => Effect.die("absent"),
  names: Effect.die("absent"),
  moved: Effect.die("absent"),
  close: () => Effect.die("absent"),
  reopen: Effect.die("absent")
}

describe("SessionError", () => {
  it("names the thread, if there is one", () => {
    const error = (threadId: string) => SessionError.make("open", threadId, { _tag: "NotFound" }).message
    assert.strictEqual(error("t"), 'open "t": there is no such thread; create it first')
    assert.strictEqual(error(""), "open: there is no such thread; create it first")
  })
})
