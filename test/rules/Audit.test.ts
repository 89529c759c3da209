import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schema, Stream } from "effect"
import { Agent, Approval, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Audit } from "effect-deepagents/rules"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { to: Schema.String },
  execute: ({ to }) => Effect.succeed(`paid ${to}`)
})
const clerk = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const model = (to: string) =>
  TestChatModel.reactive(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "done" : TestChatModel.calls([{ name: "pay", arguments: { to } }])
  )

/** A thread with a request, and a decision on it by ada. */
const decided = (threadId: string, to = "bob") =>
  Effect.gen(function* () {
    const { pending } = yield* Agent.run(clerk, "Pay", { threadId })
    const decisions = pending.map((request) =>
      Approval.decidedBy(Approval.approve(request), request, { by: { id: "ada" }, at: 7, rule: "desk" })
    )
    return yield* Agent.resume(clerk, { threadId, decisions })
  }).pipe(Effect.provide(model(to)))

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
const records = (options?: Audit.Options) => Effect.map(Stream.runCollect(Audit.records(options)), (all) => [...all])
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Audit.Record))

describe("Audit", () => {
  it.effect("has each request once, also of archived threads and of branches that were left, and since a time", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      yield* decided("a")
      yield* store.rewind("a", null)
      yield* decided("a", "eve")
      yield* decided("b")
      yield* store.archive("b")
      yield* TestClock.adjust("1 hour")
      yield* Effect.provide(Agent.run(clerk, "Pay", { threadId: "c" }), model("carl"))
      const all = yield* records()
      assert.sameDeepMembers(
        all.map(({ decision, isAsShown, request, threadId }) => [
          threadId,
          request.arguments["to"],
          decision?.by?.id,
          decision?.at,
          decision?.rule,
          isAsShown
        ]),
        [
          ["a", "bob", "ada", 7, "desk", true],
          ["a", "eve", "ada", 7, "desk", true],
          ["b", "bob", "ada", 7, "desk", true],
          ["c", "carl", undefined, undefined, undefined, undefined]
        ]
      )
      assert.deepStrictEqual(
        (yield* records({ since: 3_600_000 })).map(({ threadId }) => threadId),
        ["c"]
      )
      assert.lengthOf(yield* records({ threadId: "a" }), 2)
    }).pipe(Effect.provide(sessions))
  )

  it.effect("writes one line of JSON for each record, with any content", () =>
    Effect.gen(function* () {
      const to = `"\n\r\u2028{"_tag":"Request"}${"x".repeat(1_000_000)}`
      yield* decided('a"b', to)
      const lines = [...(yield* Stream.runCollect(Audit.lines()))]
      assert.lengthOf(lines, 1)
      assert.notInclude(lines[0], "\n")
      assert.deepStrictEqual(decode(lines[0]), (yield* records())[0])
      assert.strictEqual(decode(lines[0]).request.arguments["to"], to)
    }).pipe(Effect.provide(sessions))
  )

  it.effect("names the records that it leaves out, and goes on without a thread that is deleted meanwhile", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      for (const threadId of ["broken", "gone", "whole"]) yield* decided(threadId)
      const changed = SessionStore.SessionStore.of({
        ...store,
        export: (threadId) =>
          threadId === "gone"
            ? Stream.unwrap(Effect.as(store.delete(threadId), store.export(threadId)))
            : threadId === "broken"
              ? Stream.map(store.export(threadId), (line) => line.replace('"Approve"', '"Aprove"'))
              : store.export(threadId)
      })
      const said: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void said.push(String(message)))])
      const all = yield* Effect.provide(Effect.provideService(records(), SessionStore.SessionStore, changed), logger)
      assert.sameDeepMembers(
        all.map(({ decision, threadId }) => [threadId, decision?._tag]),
        [
          ["broken", undefined],
          ["whole", "Approve"]
        ]
      )
      assert.lengthOf(said, 1)
      assert.include(said[0], 'leaves out a request or a decision of the thread "broken"')
    }).pipe(Effect.provide(sessions))
  )
})
