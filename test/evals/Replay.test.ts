import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { Replay } from "effect-deepagents/evals"
import { HumanInTheLoop, Taint } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { renderComparison } from "../../src/cli/internal/commands/sessionsDiff.ts"
import { styleOf, widthOf } from "../../src/cli/internal/render/style.ts"

const stored = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))

/** A clerk whose tools count what they do. */
const clerk = (prompt: string, gates: ReadonlyArray<"Human" | "Taint"> = []) => {
  const did: Array<string> = []
  const tool = (name: string, readOnly: boolean) =>
    Tool.make(name, {
      description: name,
      parameters: { to: Schema.String },
      annotations: { readOnly, destructive: !readOnly },
      execute: ({ to }) =>
        Effect.suspend(() => {
          did.push(`${name} ${to}`)
          return to === "nobody" ? Effect.fail("no such account") : Effect.succeed(`done: ${name} ${to} ${did.length}`)
        })
    })
  const pay = tool("pay", false)
  const agent = Agent.make({
    name: "clerk",
    prompt,
    tools: [pay, tool("look", true)],
    middleware: [
      ...(gates.includes("Human") ? [HumanInTheLoop.make({ tools: { pay: true } })] : []),
      ...(gates.includes("Taint") ? [Taint.make({ untrusted: ["look"] })] : [])
    ]
  })
  return { agent, did }
}

const call = (name: string, to: string) => TestChatModel.calls([{ name, arguments: { to } }])

/** Two questions, each with a call. */
const original = [
  call("pay", "ada"),
  TestChatModel.text("Ada is paid.", { usage: { outputTokens: 7 } }),
  call("pay", "nobody"),
  "There is no such account."
]

const record = Effect.fnUntraced(function* (agent: Agent.Agent<string | undefined>) {
  yield* Agent.run(agent, "Pay Ada", { threadId: "t" })
  yield* Agent.run(agent, "Pay nobody", { threadId: "t" })
})

const results = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) =>
    message.role === "tool" ? [`${message.isError ? "✗" : "✓"} ${Message.text(message)}`] : []
  )

const entryOf = Effect.fnUntraced(function* (text: string) {
  const { items } = yield* SessionStore.SessionStore.use((store) => store.search(text, { threadId: "t" }))
  return items.at(-1)?.entryId ?? "none"
})

describe("Replay", () => {
  it.effect("recorded calls get their results, no tool runs twice, and the thread stays as it was", () =>
    Effect.gen(function* () {
      const { agent, did } = clerk("Be long.")
      yield* record(agent)
      const before = yield* SessionStore.checkpoint("t")
      const again = yield* Replay.rerun("t", { agent: clerk("Be brief.").agent, threadId: "short" })
      assert.deepStrictEqual([again.threadId, again.asked, again.questions], ["short", 2, 2])
      assert.strictEqual(again.result.text, "None.")
      assert.deepStrictEqual(did, ["pay ada", "pay nobody"])
      assert.deepStrictEqual(yield* SessionStore.checkpoint("t"), before)
      const { left, right, shared } = yield* Replay.compare("t", "short")
      assert.strictEqual(shared.length, 0)
      assert.deepStrictEqual(results(right.messages), results(left.messages))
      assert.deepStrictEqual([left.calls, left.rounds, right.calls, right.rounds], [2, 4, 2, 4])
      assert.deepStrictEqual([left.usage.outputTokens, right.usage.outputTokens], [7, 0])
      assert.isTrue((yield* TestChatModel.requests).slice(4).every(({ systemPrompt }) => systemPrompt === "Be brief."))
    }).pipe(
      Effect.provide([
        stored,
        TestChatModel.script([...original, call("pay", "ada"), "Paid.", call("pay", "nobody"), "None."])
      ])
    )
  )

  it.effect("asks before an unrecorded call that acts, and not before one that only reads", () =>
    Effect.gen(function* () {
      const { agent, did } = clerk("Pay.")
      yield* record(agent)
      const from = yield* entryOf("no such account")
      const again = yield* Replay.rerun("t", { agent, from })
      assert.strictEqual(again.result.stopReason, "suspended")
      assert.deepStrictEqual(
        again.result.pending.map(({ arguments: given, toolName }) => [toolName, given]),
        [["pay", { to: "bob" }]]
      )
      assert.deepStrictEqual(did, ["pay ada", "pay nobody", "look bob"])
      const { shared } = yield* Replay.compare("t", again.threadId)
      assert.deepStrictEqual(shared.map((message) => Message.text(message)).at(-1), "Ada is paid.")
      const decisions = again.result.pending.map((request) => Approval.reject(request))
      const ended = yield* Agent.resume(agent, { threadId: again.threadId, decisions }).pipe(
        Effect.provide(SessionStore.journal)
      )
      assert.strictEqual(ended.text, "Not paid.")
      assert.strictEqual(did.length, 3)
    }).pipe(
      Effect.provide([
        stored,
        TestChatModel.script([...original, call("look", "bob"), call("pay", "bob"), "Not paid."])
      ])
    )
  )

  it.effect("fresh results: each call that acts asks again, also a recorded one", () =>
    Effect.gen(function* () {
      const { agent, did } = clerk("Pay.")
      yield* record(agent)
      const { asked, result } = yield* Replay.rerun("t", { agent, results: "fresh" })
      assert.deepStrictEqual([result.stopReason, asked], ["suspended", 1])
      assert.strictEqual(did.length, 2)
    }).pipe(Effect.provide([stored, TestChatModel.script([...original, call("pay", "ada")])]))
  )

  it.effect("a gate of the agent gets the recorded result as its answer; one for a person waits for the person", () =>
    Effect.gen(function* () {
      yield* record(clerk("Pay.").agent)
      const gated = clerk("Pay.", ["Human"])
      const again = yield* Replay.rerun("t", { agent: gated.agent })
      assert.deepStrictEqual([again.result.text, again.asked], ["None.", 2])
      assert.deepStrictEqual(gated.did, [])
      const tainted = clerk("Pay.", ["Taint"])
      const stopped = yield* Replay.rerun("t", { agent: tainted.agent })
      assert.deepStrictEqual([stopped.result.stopReason, tainted.did], ["suspended", ["look ada"]])
    }).pipe(
      Effect.provide([
        stored,
        TestChatModel.script([
          ...original,
          call("pay", "ada"),
          "Paid.",
          call("pay", "nobody"),
          "None.",
          call("look", "ada"),
          call("pay", "ada")
        ])
      ])
    )
  )

  it.effect("an entry that there is not, and a thread without questions, are refused before the model is asked", () =>
    Effect.gen(function* () {
      const { agent } = clerk("Pay.")
      const store = yield* SessionStore.SessionStore
      yield* store.create({ threadId: "t" })
      for (const options of [{ agent }, { agent, from: "nowhere" }]) {
        const error = yield* Effect.flip(Replay.rerun("t", options))
        assert(error._tag === "SessionError")
        assert.strictEqual(error.reason._tag, "InvalidPoint")
      }
    }).pipe(Effect.provide([stored, TestChatModel.script([])]))
  )

  it.effect("shows the two branches side by side in wide terminals, else below each other, with their cost", () =>
    Effect.gen(function* () {
      yield* record(clerk("Be long.").agent)
      const from = yield* entryOf("Ada is paid")
      yield* Replay.rerun("t", { agent: clerk("Be brief.").agent, from, threadId: "short" })
      const comparison = yield* Replay.compare("t", "short")
      const style = styleOf(false)
      const columns = renderComparison(comparison, { columns: 120, style })
      assert.isTrue(columns.slice(4).every((line) => widthOf(line) <= 120))
      assert.isTrue(
        columns.some((line) => /^- Ada is paid\. +│ \+ Ada \[31mpaid$/.test(line)),
        columns.join("\n")
      )
      assert.match(
        columns.slice(0, 3).join("\n"),
        /^session +rounds +calls +tokens +cost\nt +4 +2 +\d+ +unknown\nshort +4/
      )
      const below = renderComparison(comparison, { columns: 80, style })
      assert.includeMembers([...below], ["- Ada is paid.", "+ Ada [31mpaid", "  > Pay Ada"])
    }).pipe(
      Effect.provide([
        stored,
        TestChatModel.script([...original, call("pay", "ada"), "Ada \u001b[31mpaid", call("pay", "nobody"), "None."])
      ])
    )
  )
})
