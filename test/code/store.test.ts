/** The time for which values of `store` last. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { CodeMode } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const look = `return [await load("a"), await load("b")]`

/** The scripts of two turns. */
const turns = [
  [`await store("a", 1); const [own] = [await load("a")]; return [own, null]`, `await store("b", 2)\n${look}`],
  [look, `await tools.wait({}); ${look}`]
]

/** It asks a person: the second turn is suspended and resumed. */
const wait = Tool.make("wait", { description: "Waits", parameters: {}, execute: () => "waited" })

const rules = Middleware.make({
  name: "rules",
  asks: true,
  rulings: (_run, calls) =>
    Effect.succeed(calls.map(({ name }) => (name === "wait" ? Ruling.ask("rules", {}) : undefined)))
})

/** Runs both turns, and returns the values that each script loaded. */
const runTurns = (store: "thread" | "turn" | "call" | undefined, review: boolean) => {
  const agent = Agent.make({
    name: "coder",
    prompt: "",
    middleware: [
      review ? CodeMode.make({ tools: [wait], store, review }) : CodeMode.make({ tools: [wait], store }),
      rules
    ]
  })
  const scripts = turns.flat()
  const model = TestChatModel.reactive(({ messages }) => {
    const done = messages.filter(({ role }) => role === "tool").length
    const turn = messages.filter(({ role }) => role === "human").length
    return done < 2 * turn
      ? TestChatModel.calls([{ name: "run_script", arguments: { script: scripts[done] ?? "" } }])
      : "done"
  })
  return Effect.gen(function* () {
    const results: Array<unknown> = []
    for (const [at] of turns.entries()) {
      let result = yield* Agent.run(agent, `turn ${at}`, { threadId: "t" })
      while (result.stopReason === "suspended") {
        const decisions = result.pending.map((one) => Approval.approve(one))
        result = yield* Agent.resume(agent, { threadId: "t", decisions })
      }
      results.splice(
        0,
        results.length,
        ...result.messages.flatMap((message) => (message.role === "tool" ? [JSON.parse(Message.text(message))] : []))
      )
    }
    return results
  }).pipe(Effect.provide(Layer.merge(model, SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer)))))
}

layer(NodeScripts.layer())("values that scripts store", (it) => {
  const own = [1, null]
  const gone = [null, null]
  for (const review of [false, true]) {
    const how = review ? ", under review" : ""
    it.effect(`last for the thread${how}`, () =>
      Effect.gen(function* () {
        for (const store of [undefined, "thread"] as const) {
          assert.deepStrictEqual(yield* runTurns(store, review), [own, [1, 2], [1, 2], [1, 2]])
        }
      })
    )

    it.effect(`last for the turn${how}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* runTurns("turn", review), [own, [1, 2], gone, gone])
      })
    )

    it.effect(`last for the call${how}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* runTurns("call", review), [own, [null, 2], gone, gone])
      })
    )
  }

  it.effect("last over a suspension of their turn", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "coder",
        prompt: "",
        middleware: [CodeMode.make({ tools: [wait], store: "turn" }), rules]
      })
      const scripts = [`await store("a", 1)`, `await tools.wait({}); ${look}`]
      const model = TestChatModel.reactive(({ messages }) => {
        const results = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
        const script = scripts[results.length]
        return script === undefined
          ? (results.at(-1) ?? "")
          : TestChatModel.calls([{ name: "run_script", arguments: { script } }])
      })
      const first = yield* Effect.provide(Agent.run(agent, "go"), model)
      const decisions = first.pending.map((one) => Approval.approve(one))
      const { text } = yield* Effect.provide(Agent.resume(agent, { checkpoint: first, decisions }), model)
      assert.deepStrictEqual(JSON.parse(text), own)
    })
  )
})
