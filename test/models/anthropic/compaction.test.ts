/** Claude compacts a conversation itself: it is asked to, its block goes back as it came, and its tokens are counted. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Checkpoint, Tool } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { type Event, serve, stream } from "../servers/anthropic.ts"
import { claude } from "./asking.ts"

const start = (usage: Readonly<Record<string, unknown>>): Event => ({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-opus-5-5",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage
  }
})

const block = (
  index: number,
  begun: Readonly<Record<string, unknown>>,
  ...deltas: ReadonlyArray<Readonly<Record<string, unknown>>>
): ReadonlyArray<Event> => [
  { type: "content_block_start", index, content_block: begun },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index }
]

const end = (reason: string, usage: Readonly<Record<string, unknown>>): ReadonlyArray<Event> => [
  { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage },
  { type: "message_stop" }
]

const iterations = [
  { type: "compaction", input_tokens: 60_000, output_tokens: 900 },
  { type: "message", input_tokens: 1_000, output_tokens: 20 }
]

/** A turn that begins with a compaction and calls a tool. `deltas` belong to the compaction. */
const compacted = (
  begun: Readonly<Record<string, unknown>>,
  ...deltas: ReadonlyArray<Readonly<Record<string, unknown>>>
) =>
  stream([
    start({ input_tokens: 1_000, output_tokens: 1 }),
    ...block(0, { type: "compaction", ...begun }, ...deltas.map((delta) => ({ type: "compaction_delta", ...delta }))),
    ...block(1, { type: "text", text: "" }, { type: "text_delta", text: "Let me look." }),
    ...block(
      2,
      { type: "tool_use", id: "toolu_1", name: "look", input: {} },
      { type: "input_json_delta", partial_json: '{"at":"a"}' }
    ),
    ...end("tool_use", { input_tokens: 1_000, output_tokens: 20, iterations })
  ])

const done = stream([
  start({ input_tokens: 1_100, output_tokens: 1 }),
  ...block(0, { type: "text", text: "" }, { type: "text_delta", text: "Done." }),
  ...end("end_turn", { input_tokens: 1_100, output_tokens: 2 })
])

const agent = Agent.make({
  name: "a",
  prompt: "",
  tools: [
    Tool.make("look", {
      description: "Looks",
      parameters: { at: Schema.String },
      execute: ({ at }) => Effect.succeed(`${at}: nothing`)
    })
  ],
  middleware: [Summarization.make({ by: "provider", trigger: { tokens: 60_000 }, contextWindowTokens: 200_000 })]
})

const edit = (value: number) => ({
  edits: [{ type: "compact_20260112", trigger: { type: "input_tokens", value } }]
})

describe("a compaction by Claude", () => {
  it.live("is asked for at the trigger, goes back as it came, and its tokens count", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        compacted({ content: "" }, { content: "They spoke ", encrypted_content: "ab" }, { content: "of a." }),
        done,
        done
      )
      const result = yield* Agent.run(agent, "word ".repeat(50)).pipe(Effect.provide(claude(server)))
      assert.strictEqual(result.text, "Done.")
      const [first, second] = server.requests
      assert.deepStrictEqual(first?.body.context_management, edit(60_000))
      assert.include(String(first?.headers["anthropic-beta"]), "compact-2026-01-12")
      const back = { type: "compaction", content: "They spoke of a.", encrypted_content: "ab" }
      assert.deepStrictEqual(second?.body.messages[1].content[0], back)
      assert.strictEqual(result.usage.inputTokens, 61_000 + 1_100)
      assert.strictEqual(result.usage.outputTokens, 920 + 2)
      assert.strictEqual(server.requests.length, 2, "no summary is written here")

      // The thread is stored and goes on: the block is still there.
      const stored = yield* Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(result))))
      yield* Agent.run(agent, "And now?", { history: stored.messages }).pipe(Effect.provide(claude(server)))
      assert.deepStrictEqual(server.requests[2]?.body.messages[1].content[0], back)
    })
  )

  it.live("that failed has no content, and goes back without", () =>
    Effect.gen(function* () {
      const server = yield* serve(compacted({ content: null }, { content: null, encrypted_content: null }), done)
      const result = yield* Agent.run(agent, "go").pipe(Effect.provide(claude(server)))
      assert.strictEqual(result.text, "Done.")
      assert.deepStrictEqual(server.requests[1]?.body.messages[1].content[0], { type: "compaction", content: null })
    })
  )

  it.live("is asked for from 50,000 tokens on, and of no model that can't", () =>
    Effect.gen(function* () {
      const server = yield* serve(done, done)
      const early = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Summarization.make({ by: "provider", trigger: { tokens: 1_000 }, contextWindowTokens: 200_000 })]
      })
      yield* Agent.run(early, "go").pipe(Effect.provide(claude(server)))
      yield* Agent.run(early, "go").pipe(Effect.provide(claude(server, { model: "claude-opus-4-5" })))
      const [first, second] = server.requests
      assert.deepStrictEqual(first?.body.context_management, edit(50_000))
      assert.isUndefined(second?.body.context_management)
      assert.notInclude(String(second?.headers["anthropic-beta"]), "compact")
    })
  )
})
