/** Programs whose process is killed at each of their effects. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Middleware, Question, ToolContext } from "effect-deepagents"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { isOpenCallSlot } from "../../src/core/thread/suspension.ts"
import { bundle } from "../bundle.ts"
import { runChild } from "../child.ts"
import { sampled } from "../scale.ts"
import { folder } from "./places.ts"

const run = (...args: ReadonlyArray<string>) => runChild(bundle(new URL("children/program.ts", import.meta.url)), args)

const hold = (name: string, effects: number, expected: string) =>
  describe(`the program "${name}"`, () => {
    const whole = Effect.cached(
      Effect.scoped(
        Effect.gen(function* () {
          const path = yield* folder
          const { text } = yield* run(path, name, "0", "run")
          return { ...JSON.parse(text), did: readFileSync(`${path}/did.txt`, "utf8").trim().split("\n") }
        })
      )
    ).pipe(Effect.runSync)
    for (const at of sampled(Array.from({ length: effects }, (_, index) => index + 1))) {
      it.live(
        `ends with all of its work when it is killed at its effect ${at}`,
        Effect.fnUntraced(function* () {
          const { did: once, text } = yield* whole
          assert.strictEqual(text, expected)
          assert.strictEqual(once.length, effects)
          const path = yield* folder
          assert.deepStrictEqual(yield* run(path, name, `${at}`, "run"), { code: null, text: "" })
          const second = yield* run(path, name, "0", "resume")
          assert.deepStrictEqual(JSON.parse(second.text).text, expected)
          assert.deepStrictEqual(JSON.parse(second.text).inside, [])
          const did = readFileSync(`${path}/did.txt`, "utf8").trim().split("\n")
          const killed = did[at - 1] ?? ""
          // Only the step or the turn in flight is done again, and no tool.
          assert.deepStrictEqual(
            did.filter((line, index) => did.indexOf(line) !== index),
            killed.startsWith("build") ? [] : [killed]
          )
        }, Effect.scoped),
        60_000
      )
    }
  })

hold("ten", 10, "55")
hold("goal", 12, "3 rounds")

describe("a program that waits", () => {
  it.effect("is forked and rewound only to a place before its begin", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const step = (name: string) =>
        Agent.step(
          name,
          Effect.sync(() => {
            ran.push(name)
            return ran.length
          }),
          Schema.Finite
        )
      const program = Agent.program({
        name: "program",
        middleware: [Middleware.suspendable],
        run: () =>
          Effect.gen(function* () {
            const before = yield* step("before")
            const { ask } = yield* ToolContext.ToolContext
            const which = yield* ask(Question.make("Which way?", { answer: Schema.String }))
            return `${before} ${which} ${yield* step(`after ${which}`)}`
          })
      })
      const first = yield* Agent.run(program, "go", { threadId: "t" })
      const store = yield* SessionStore.SessionStore
      const { entries } = yield* store.load("t", { limit: 100 })
      const begun = entries.findIndex(({ entry }) => entry._tag === "State" && isOpenCallSlot(entry.slot))
      assert.isAbove(begun, 0)
      for (const [index, { id }] of entries.entries()) {
        const fork = yield* Effect.result(store.fork("t", { at: id }))
        assert.strictEqual(fork._tag, index < begun ? "Success" : "Failure", `entry ${index}`)
        if (index < begun) continue
        const moved = yield* Effect.result(store.rewind("t", id))
        assert.strictEqual(moved._tag === "Failure" && moved.failure.reason._tag, "InvalidPoint")
      }
      const decisions = first.pending.map((request) => Approval.respond(request, "left"))
      const { text } = yield* Agent.resume(program, { threadId: "t", decisions })
      assert.strictEqual(text, "1 left 2")
      assert.deepStrictEqual(ran, ["before", "after left"])
      // Its effects are a whole from its answer on.
      const all = (yield* store.load("t", { limit: 100 })).entries
      const answered = all.findIndex(({ entry }) => entry._tag === "Message" && entry.message.role === "ai")
      for (const [index, { id }] of all.entries()) {
        const fork = yield* Effect.result(store.fork("t", { threadId: `f${index}`, at: id }))
        assert.strictEqual(fork._tag, index < begun || index >= answered ? "Success" : "Failure", `entry ${index}`)
        if (index < answered) continue
        assert.deepStrictEqual((yield* store.waiting({ threadId: `f${index}` })).items, [])
        const next = yield* Agent.run(program, "again", { threadId: `f${index}` })
        assert.strictEqual(next.stopReason, "suspended")
        assert.lengthOf(next.pending, 1)
      }
      assert.deepStrictEqual(
        ran.slice(2),
        all.slice(answered).map(() => "before")
      )
    }).pipe(Effect.provide(SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))))
  )
})
