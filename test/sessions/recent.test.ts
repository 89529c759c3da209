/** The memory of a store about its threads equals the reading of a new store, after any writers. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, type Scope, Stream } from "effect"
import { Agent, type Journal, Message, Usage } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { loadThread } from "../../src/sessions/journal.ts"
import { scaled } from "../scale.ts"
import { folder } from "./places.ts"

const aFile = Effect.map(folder, (at) => join(at, "sessions.db"))

/** A store of its own, as another process has one. */
const open = (file: string) =>
  Effect.map(Layer.build(Layer.fresh(SqliteSessions.layer({ file }))), Context.get(SessionStore.SessionStore))

const fresh = <A, E>(file: string, body: (store: SessionStore.Service) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(open(file), body))

const agent = Agent.make({ name: "a", prompt: "p" })

const say = (store: SessionStore.Service, text: string, threadId = "t") =>
  Effect.map(Agent.run(agent, text, { threadId }), ({ messages }) => messages.map(Message.text)).pipe(
    Effect.provide(SessionStore.journal.pipe(Layer.provide(Layer.succeed(SessionStore.SessionStore, store)))),
    Effect.provide(TestChatModel.reactive(({ messages }) => `answer to ${Message.text(messages.at(-1)!)}`))
  )

const damage = (file: string) => {
  const database = new DatabaseSync(file)
  database.exec(`UPDATE session_entries SET body = '{"_tag":"Message","message":{}}' WHERE type = 'Message'`)
  database.close()
}

describe("the next run on a thread", () => {
  it.live(
    "begins without reading it, and one of another process reads it",
    Effect.fnUntraced(function* () {
      const file = yield* aFile
      const store = yield* open(file)
      yield* say(store, "one")
      damage(file)
      assert.deepStrictEqual(yield* say(store, "two"), ["one", "answer to one", "two", "answer to two"])
      const anew = yield* Effect.exit(fresh(file, (other) => say(other, "three")))
      assert.isTrue(Exit.isFailure(anew))
    })
  )

  it.live(
    "sees entries that another process appended, rewound, made anew and imported meanwhile",
    Effect.fnUntraced(function* () {
      const file = yield* aFile
      const store = yield* open(file)
      const other = yield* open(file)
      yield* say(store, "one")
      yield* say(other, "two")
      assert.deepStrictEqual((yield* say(store, "three")).length, 6)
      const lines = yield* Stream.runCollect(store.export("t"))
      const { entries } = yield* other.load("t")
      const first = entries.findLast(({ entry }) => entry._tag === "RunSettled")
      assert.isDefined(first)
      const early = entries.find(({ entry }) => entry._tag === "Message" && entry.message.role === "ai")
      yield* other.rewind("t", early?.id ?? null)
      assert.deepStrictEqual(yield* say(store, "four"), ["one", "answer to one", "four", "answer to four"])
      yield* other.delete("t")
      assert.deepStrictEqual(yield* say(store, "five"), ["five", "answer to five"])
      yield* other.delete("t")
      yield* Effect.sleep("2 millis")
      // The same ids, and other texts.
      yield* other.import(Stream.fromIterable([...lines].map((line) => line.replaceAll("one", "uno"))))
      assert.strictEqual((yield* say(store, "six"))[0], "uno")
      assert.strictEqual((yield* fresh(file, (anew) => say(anew, "seven")))[0], "uno")
    })
  )

  it.live(
    "gets immutable data: a checkpoint stays unchanged when the thread grows",
    Effect.fnUntraced(function* () {
      const store = yield* open(yield* aFile)
      yield* say(store, "one")
      const before = yield* loadThread(store, "t")
      yield* say(store, "two")
      assert.strictEqual(before.checkpoint?.messages.length, 2)
      assert.strictEqual((yield* loadThread(store, "t")).checkpoint?.messages.length, 4)
    })
  )

  it.live(
    "of thousands of threads is read again when its turn comes late",
    Effect.fnUntraced(function* () {
      const store = yield* open(yield* aFile)
      const large = "x".repeat(4 * 1024 * 1024)
      for (let n = 0; n < 12; n++) yield* say(store, large, `t${n}`)
      for (let n = 0; n < 12; n++) assert.strictEqual((yield* say(store, "on", `t${n}`)).length, 4)
    })
  )
})

const act = fc.record({
  does: fc.constantFrom(
    "say",
    "say",
    "state",
    "cut",
    "part",
    "part",
    "over",
    "label",
    "settle",
    "look",
    "rewind",
    "remake"
  ),
  by: fc.boolean(),
  n: fc.nat(7)
})
type Act = typeof act extends fc.Arbitrary<infer A> ? A : never
const acts = fc.array(act, { maxLength: 25 })

const entriesOf = ({ does, n }: Act): ReadonlyArray<Journal.Entry> => {
  const step = { _tag: "Step", usage: Usage.make({ inputTokens: n, outputTokens: 1 }), rounds: n } as const
  if (does === "say") return [{ _tag: "Message", message: Message.human(`said ${n}`, { source: "s" }) }, step]
  if (does === "state" && n > 5) return [{ _tag: "State", slot: "slot" }, step]
  if (does === "state") return [{ _tag: "State", slot: ["slot", "slot/a", "other"][n % 3] ?? "", value: { n } }, step]
  if (does === "cut") return [{ _tag: "Message", message: Message.ai(`cut ${n}`, { stopReason: "interrupted" }) }]
  if (does === "part") {
    return [{ _tag: "Part", turn: `turn ${n % 2}`, model: "m", pieces: [{ _tag: "Text", from: 0, text: `part ${n}` }] }]
  }
  if (does === "over") return [{ _tag: "Message", message: Message.ai(`over ${n}`) }, step]
  if (does === "settle") return [{ _tag: "RunSettled", runId: "r", outcome: `outcome ${n}` }, step]
  return []
}

let ids = 0
const perform = Effect.fnUntraced(function* (store: SessionStore.Service, act: Act) {
  const { id } = yield* store.leaf("t")
  if (act.does === "rewind") {
    const { entries } = yield* store.load("t")
    yield* store.rewind("t", entries[act.n]?.id ?? null)
  } else if (act.does === "remake") {
    yield* store.delete("t")
    yield* Effect.sleep("2 millis")
    yield* store.create({ threadId: "t" })
  } else if (act.does === "label") yield* store.label("t", "name", id)
  else {
    const entries = entriesOf(act).map((entry) => ({ id: `e${ids++}`, entry }))
    // An entry other than a part may replace the parts before it.
    const base = (yield* store.load("t")).entries.findLast(({ entry }) => entry._tag !== "Part")?.id ?? null
    const behind = act.does !== "part" && act.n % 2 === 0 ? base : id
    yield* Effect.catchIf(
      store.append("t", { leaf: id, behind, entries }),
      ({ reason }) => reason._tag === "InvalidPoint",
      () => Effect.void
    )
  }
})

it.live(
  "two stores on one file return the same as a third, after any operations of both",
  Effect.fnUntraced(function* () {
    const file = yield* aFile
    const context = yield* Effect.context<Scope.Scope>()
    const one = yield* open(file)
    const two = yield* open(file)
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(acts, (all) =>
          Effect.gen(function* () {
            yield* Effect.ignore(one.delete("t"))
            yield* Effect.sleep("2 millis")
            yield* one.create({ threadId: "t" })
            for (const act of all) {
              yield* perform(act.by ? one : two, act)
              if (act.does === "look" || act.n === 0) yield* loadThread(act.by ? two : one, "t")
            }
            const read = yield* fresh(file, (store) => loadThread(store, "t"))
            for (const store of [one, two, one]) {
              assert.deepStrictEqual(yield* loadThread(store, "t"), read)
            }
          }).pipe(Effect.provideContext(context), Effect.runPromise)
        ),
        { numRuns: scaled(60) }
      )
    )
  }),
  60_000
)
