/** A part of a store: nothing of another part is seen or changed, and runs on both take turns. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Chat, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { SessionConformance } from "effect-deepagents/testing/conformance"
import { scope } from "../../src/server/internal/scope.ts"
import { makeJournal } from "../../src/sessions/journal.ts"
import * as places from "../sessions/places.ts"

const partOf = (store: SessionStore.Service, name: string) =>
  scope(store, { prefix: `t/${name}/`, metadata: { "own/tenant": name } })

const pay = Tool.make("pay", { description: "Pays", parameters: {}, execute: () => Effect.succeed("paid") })
const payer = Agent.make({
  name: "payer",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const partLayer = Layer.effect(
  SessionStore.SessionStore,
  Effect.map(SessionStore.SessionStore, (store) => partOf(store, "a"))
).pipe(Layer.provide(MemorySessions.layer))

describe("a part of a store", () => {
  for (const check of SessionConformance.suite({ ...places.memory, layer: () => partLayer })) {
    // The prefix is a part of the id's length.
    if (check.name.includes("ids never collide")) continue
    const test = check.absent === undefined ? it.live : it.live.skip
    test(check.name, () => check.run, 60_000)
  }
})

describe("two parts of a store", () => {
  it.effect("share no thread, no list, no search, no request and no export", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const [a, b] = [partOf(store, "a"), partOf(store, "b")]
      for (const [part, name] of [
        [a, "a"],
        [b, "b"]
      ] as const) {
        for (const id of ["one", "two"]) {
          yield* Effect.provideService(
            Effect.flatMap(Chat.make(payer, id, { metadata: { tenant: "b", "own/tenant": "b", by: name } }), (chat) =>
              chat.send(`secret of ${name}`)
            ),
            SessionStore.SessionStore,
            part
          )
        }
      }
      const seen = yield* Effect.all([
        a.list(),
        a.list({ where: { "own/tenant": "b" } }),
        a.search("secret"),
        a.search("secret", { where: { "own/tenant": "b" } }),
        a.waiting(),
        a.info("one"),
        Stream.runCollect(a.export("one"))
      ])
      assert.notInclude(JSON.stringify(seen), "of b")
      assert.notInclude(JSON.stringify(seen), "t/")
      assert.deepStrictEqual(seen[0].items.map(({ threadId }) => threadId).toSorted(), ["one", "two"])
      assert.deepStrictEqual(seen[2].items.map(({ threadId }) => threadId).toSorted(), ["one", "two"])
      assert.deepStrictEqual(seen[4].items.map(({ threadId }) => threadId).toSorted(), ["one", "two"])
      // Pages of requests have no foreign cursor.
      const first = yield* a.waiting({ limit: 1 })
      assert.include(first.next ?? "", "t/a/")
      const second = yield* a.waiting({ limit: 1, cursor: first.next ?? "" })
      assert.deepStrictEqual([first, second].flatMap(({ items }) => items.map(({ threadId }) => threadId)).toSorted(), [
        "one",
        "two"
      ])
      assert.isNull(second.next)
      const [theirs] = (yield* b.waiting()).items
      assert.isUndefined(yield* a.waitingFor(theirs?.request.id ?? ""))
      assert.strictEqual((yield* b.waitingFor(theirs?.request.id ?? ""))?.threadId, theirs?.threadId)
      for (const id of ["../b/one", "t/b/one", "b/one"]) {
        const error = yield* Effect.flip(a.load(id))
        assert.strictEqual(error.reason._tag, "NotFound")
        assert.strictEqual(error.threadId, id)
      }
      // An export of another part is imported into one's own.
      const lines = yield* Stream.runCollect(b.export("one"))
      const copy = yield* a.import(Stream.fromIterable(lines), { threadId: "copy" })
      assert.deepStrictEqual(copy.metadata, { tenant: "b", by: "b" })
      assert.strictEqual((yield* a.import(Stream.fromIterable(lines)).pipe(Effect.flip))._tag, "SessionError")
      yield* a.delete("one")
      assert.strictEqual((yield* b.info("one")).threadId, "one")
    }).pipe(
      Effect.provide([
        MemorySessions.layer,
        TestChatModel.reactive(() => TestChatModel.calls([{ name: "pay", arguments: {} }]))
      ])
    )
  )

  it.effect("are held by the store under them: a run by its part and a run by the store take turns", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const entered = yield* Deferred.make<void>()
      const left = yield* Deferred.make<void>()
      const wait = Tool.make("wait", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(Deferred.succeed(entered, undefined), Effect.as(Deferred.await(left), "done"))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [wait] })
      const inPart = (name: string) => Effect.provideService(SessionStore.SessionStore, partOf(store, name))
      const first = yield* Effect.forkChild(
        Effect.flatMap(Chat.make(agent, "one"), (chat) => chat.send("go")).pipe(inPart("a"))
      )
      yield* Deferred.await(entered)
      // Another decoration, made anew, as for each request.
      const busy = yield* Effect.flatMap(Chat.make(agent, "one", { busy: "refuse" }), (chat) => chat.send("and?")).pipe(
        inPart("a"),
        Effect.exit
      )
      assert.isTrue(Exit.isFailure(busy))
      const { hold } = makeJournal(store, { busy: "refuse" })
      const held = yield* Effect.exit(Effect.scoped(hold?.("t/a/one") ?? Effect.die("no hold")))
      assert.isTrue(Exit.isFailure(held))
      // The thread of the same id in another part is free.
      yield* Effect.scoped(makeJournal(partOf(store, "b"), { busy: "refuse" }).hold?.("one") ?? Effect.die("no hold"))
      yield* Deferred.succeed(left, undefined)
      assert.strictEqual((yield* Fiber.join(first)).text, "done")
      const again = yield* Effect.flatMap(Chat.make(agent, "one"), (chat) => chat.history).pipe(inPart("a"))
      assert.deepStrictEqual(again.map(Message.text), ["go", "", "done", "done"])
    }).pipe(
      Effect.provide([
        MemorySessions.layer,
        TestChatModel.reactive(({ messages }) =>
          messages.some(({ role }) => role === "tool") ? "done" : TestChatModel.calls([{ name: "wait", arguments: {} }])
        )
      ])
    )
  )
})
