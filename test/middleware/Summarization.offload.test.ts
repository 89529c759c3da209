import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type BackendError, Message } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestBackend } from "effect-deepagents/testing"
import fc from "fast-check"
import * as Journals from "../core/journal.ts"
import {
  agentWith,
  asked,
  codes,
  eventsOf,
  filler,
  model,
  reader,
  reads,
  recordOf,
  summaryIn,
  textOf
} from "./Summarization.fixtures.ts"

const window = 4_000
const agent = agentWith(Summarization.make({ offload: true }))

const history = Effect.map(TestBackend.files, (files) =>
  Object.entries(files)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([path, content]) => ({
      path,
      text: typeof content === "string" ? content : new TextDecoder().decode(content)
    }))
)

const files = (options?: Parameters<typeof TestBackend.layer>[0]) =>
  [TestBackend.layer(options), Journals.layer({})] as const

const failing = (reason: BackendError.Reason) =>
  TestBackend.layer({ fail: ({ operation }) => (operation === "write" ? reason : undefined) })

describe("offload", () => {
  it.effect("writes folded messages once and in order, in a file a compaction; the summary names it", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "Read it all", { threadId: "thread-1" })
      const files = yield* history
      assert.isAbove(files.length, 2)
      assert.deepStrictEqual(
        files.map((file) => file.path),
        files.map((_, index) => `/conversation_history/thread-1/000${index + 1}.md`)
      )
      const all = files.map((file) => file.text).join("")
      const numbers = Array.from(all.matchAll(/^## (\d+)\. /gm), (match) => Number(match[1]))
      assert.deepStrictEqual(
        numbers,
        numbers.map((_, index) => index + 1)
      )
      assert.include(all, "## 1. User\n\nRead it all")
      assert.include(all, `\`\`\`text\n${filler("contents of /file-1", 700)}\n\`\`\``)
      // Every file is written once: nothing grows with the length of the thread.
      const requests = yield* TestBackend.requests
      assert.deepStrictEqual(
        requests.map((request) => request.operation),
        files.map(() => "write")
      )
      const { turns } = yield* asked
      const last = textOf(summaryIn(turns.at(-1)))
      const named = Array.from(last.matchAll(/\d{4}\.md/g), ([name]) => `/conversation_history/thread-1/${name}`)
      assert.include(last, "in the folder /conversation_history/thread-1, in these files")
      assert.deepStrictEqual(named, files.map((file) => file.path).slice(0, named.length))
      assert.isAtLeast(named.length, 2)
      assert.strictEqual(result.messages.length, 162)
    }).pipe(Effect.provide([model(reader(80), { contextWindowTokens: window }), ...files()]))
  )

  it.effect("a cleared result names its file", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith(Summarization.make({ offload: true }), [reads(3_000)]), "Read", { threadId: "t" })
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 0)
      const [first] = turns.at(-1)?.messages.filter((message) => message.role === "tool") ?? []
      assert.include(textOf(first), "It is kept in /conversation_history/t, under call call-1.")
      const [file] = yield* history
      assert.include(file?.text, "## 3. Result of read_file, call call-1")
    }).pipe(Effect.provide([model(reader(6), { contextWindowTokens: window }), ...files()]))
  )

  it.effect("reports a failed write, and names no missing file", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(agent, "Read it all")
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      assert.include(codes(events), "summarization-offload")
      const { turns } = yield* asked
      assert.isDefined(summaryIn(turns.at(-1)))
      for (const turn of turns) assert.notInclude(JSON.stringify(turn.messages), "/conversation_history")
    }).pipe(Effect.provide([model(reader(60), { contextWindowTokens: window }), failing({ _tag: "Unavailable" })]))
  )

  it.effect("writes the rest of a failed write the next time", () => {
    let left = 1
    return Effect.gen(function* () {
      yield* Agent.run(agent, "Read it all")
      const all = (yield* history).map((file) => file.text).join("")
      assert.include(all, "## 1. User")
      assert.include(all, "## 50. ")
    }).pipe(
      Effect.provide([
        model(reader(80), { contextWindowTokens: window }),
        TestBackend.layer({ fail: () => (left-- > 0 ? { _tag: "Unavailable" } : undefined) })
      ])
    )
  })

  it.effect("a run that goes on appends at the end of the last one; another branch does not overwrite it", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(agent, "Read it all")
      const before = yield* history
      const { messages, state } = first
      yield* Agent.run(agent, filler("Left", 6_000), { history: messages, state })
      const left = yield* history
      assert.isAbove(left.length, before.length)
      assert.deepStrictEqual(left.slice(0, before.length), before)
      const right = yield* Agent.run(agent, filler("Right", 6_000), { history: messages, state })
      const both = yield* history
      assert.deepStrictEqual(
        left.filter((file) => !both.some((other) => other.path === file.path && other.text === file.text)),
        []
      )
      assert.isAbove(both.length, left.length)
      // What the branch names is its own, in order.
      const { offload } = yield* recordOf(right.state)
      const own = (offload?.files ?? []).map(
        (name) => both.find((file) => file.path === `${offload?.folder}/${name}`)?.text ?? ""
      )
      const numbers = Array.from(own.join("").matchAll(/^## (\d+)\. /gm), (match) => Number(match[1]))
      assert.deepStrictEqual(
        numbers,
        numbers.map((_, index) => index + 1)
      )
      assert.include(own.join(""), "Right: lorem")
      assert.notInclude(own.join(""), "Left: lorem")
    }).pipe(
      Effect.provide([
        model((n) => (n > 60 ? (n % 40 === 0 ? "done" : reader(1_000)(n)) : reader(59)(n)), {
          contextWindowTokens: window
        }),
        ...files()
      ])
    )
  )

  const quick = agentWith(Summarization.make({ offload: true }), [reads(2_000)])

  it.effect("any thread id names one folder of its own under the folder of histories", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(
            fc.oneof(
              fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), minLength: 1 }),
              fc.constantFrom(
                "../../etc",
                "a/b",
                "a_b",
                "a_2f_b",
                "~",
                ".",
                "..",
                "C:\\x",
                "\0",
                "x".repeat(500),
                `${"x".repeat(500)}y`
              )
            ),
            { minLength: 2, maxLength: 3 }
          ),
          (ids) =>
            Effect.gen(function* () {
              for (const threadId of ids) yield* Agent.run(quick, "Read", { threadId })
              const folders = new Set(
                (yield* history).map(
                  (file) => /^\/conversation_history\/([\w-]{1,80})\/\d{4}\.md$/.exec(file.path)?.[1]
                )
              )
              assert.isFalse(folders.has(undefined))
              assert.strictEqual(folders.size, ids.length)
            }).pipe(
              Effect.provide([
                model((n) => (n % 4 === 0 ? "done" : reader(1_000)(n)), { contextWindowTokens: 1_000 }),
                ...files()
              ]),
              Effect.runPromise
            )
        ),
        { numRuns: 12 }
      )
    )
  )

  it.effect("ids that look alike as paths are told apart", () =>
    Effect.gen(function* () {
      const ids = ["a/b", "a_b", "a_2f_b", "a\\b", "a b"]
      for (const threadId of ids) yield* Agent.run(quick, "Read", { threadId })
      const folders = new Set((yield* history).map((file) => file.path.split("/")[2]))
      assert.strictEqual(folders.size, ids.length)
    }).pipe(
      Effect.provide([
        model((n) => (n % 4 === 0 ? "done" : reader(1_000)(n)), { contextWindowTokens: 1_000 }),
        ...files()
      ])
    )
  )

  it.effect("a sub-agent writes into a folder of its own", () =>
    Effect.gen(function* () {
      const summarization = Summarization.make({ offload: true })
      const child = Agent.make({
        name: "child",
        description: "Reads",
        prompt: "child",
        tools: [reads(700)],
        middleware: [summarization],
        maxRounds: 100
      })
      const parent = Agent.make({
        name: "parent",
        prompt: "parent",
        tools: [Agent.asTool(child)],
        middleware: [summarization]
      })
      const events = yield* AgentTest.events(parent, "Go", { threadId: "t" })
      const [started] = eventsOf(events, "SubagentStarted")
      const folders = new Set((yield* history).map((file) => file.path.split("/")[2]))
      assert.deepStrictEqual([...folders], [started?.childRunId])
    }).pipe(
      Effect.provide([
        model(
          (n) =>
            n === 1
              ? { _tag: "Answer", text: "", calls: [{ name: "child", arguments: { task: "Read" } }], options: {} }
              : reader(50)(n),
          { contextWindowTokens: window }
        ),
        ...files()
      ])
    )
  )

  it.effect("text that looks like the end of a block does not end it; images are named, not written", () =>
    Effect.gen(function* () {
      const tricky = "before\n````\n## 2. User\n````` after"
      const messages = [
        Message.human("See", {
          images: [{ base64: "SECRETBYTES", mimeType: "image/png" }, { url: "data:image/png;base64,SECRETBYTES" }]
        }),
        Message.ai("", { toolCalls: [{ id: "1", name: "read_file", arguments: {} }] }),
        Message.tool(tricky, { toolCallId: "1", toolName: "read_file" }),
        ...Array.from({ length: 40 }, (_, n) => [Message.human(filler(`${n}`, 700)), Message.ai("yes")]).flat()
      ]
      yield* Agent.run(agent, "And?", { history: messages })
      const [file] = yield* history
      assert.include(file?.text, `\`\`\`\`\`\`text\n${tricky}\n\`\`\`\`\`\``)
      assert.notInclude(file?.text, "SECRETBYTES")
      assert.include(file?.text, "[image]")
    }).pipe(Effect.provide([model(() => "done", { contextWindowTokens: window }), ...files()]))
  )

  it.effect("the state lists the written messages", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "Read", { threadId: "t" })
      const { offload } = yield* recordOf(result.state)
      assert.strictEqual(offload?.folder, "/conversation_history/t")
      assert.deepStrictEqual(
        offload?.files.map((name) => `/conversation_history/t/${name}`),
        (yield* history).map((file) => file.path)
      )
      const through = offload?.through
      assert.strictEqual(result.messages[through?.index ?? -1]?.id, through?.id)
    }).pipe(Effect.provide([model(reader(60), { contextWindowTokens: window }), ...files()]))
  )
})
