import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ChatModel, type Json, Message } from "effect-deepagents"
import type * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import { claude, askToEnd, message, request, tool, turn } from "../anthropic/asking.ts"
import { answer, type Event, say, serve, stream } from "../servers/anthropic.ts"

type Blocks = Parameters<typeof answer>[0]

type Options = Exclude<Parameters<typeof answer>[1], undefined>

interface Case {
  readonly blocks: Blocks
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: number
  readonly stop?: Message.TurnStop
  readonly options?: Options
  readonly container?: string
  /** Blocks that go back as they came, by their type. */
  readonly kept?: ReadonlyArray<string>
}

const call = (id: string, of = "Paris") => ({ call: "get_weather", id, input: { of } })

const search = { server: "web_search", id: "srvtoolu_1", input: { query: "weather" } }

const found = {
  block: {
    type: "web_search_tool_result",
    tool_use_id: "srvtoolu_1",
    content: [{ type: "web_search_result", url: "https://example.org/w", title: "W", encrypted_content: "x" }]
  }
}

const citation = {
  type: "web_search_result_location",
  url: "https://example.org/w",
  title: "W",
  cited_text: "sunny",
  encrypted_index: "e"
}

const code = { server: "code_execution", id: "srvtoolu_2", input: { code: "1+1" } }

const ran = (content: Json.JsonObject, type = "code_execution") => ({
  block: { type: `${type}_tool_result`, tool_use_id: "srvtoolu_2", content }
})

const advice = {
  block: {
    type: "advisor_tool_result",
    tool_use_id: "srvtoolu_3",
    content: { type: "advisor_result", text: "Look again." }
  }
}

const signed = (thinking: string) => ({ thinking, signature: `sig of ${thinking}` })

const cases: Readonly<Record<string, Case>> = {
  text: { blocks: [{ text: "It is sunny." }], text: "It is sunny." },
  "text in pieces": { blocks: [{ text: ["It ", "is ", "sunny."] }], text: "It is sunny." },
  "text of many scripts": { blocks: [{ text: ["Grüße ", "👋🏽 你好"] }], text: "Grüße 👋🏽 你好" },
  "a blank between texts": {
    blocks: [{ text: "First.", citations: [citation] }, { text: "\n\n" }, { text: "Second.", citations: [citation] }],
    text: "First.\n\nSecond."
  },
  "a space between texts": {
    blocks: [{ text: "…JST." }, { text: " " }, { text: "Opened in 2003" }],
    text: "…JST. Opened in 2003"
  },
  "thinking and text": { blocks: [signed("Hm."), { text: "Sun." }], text: "Sun.", reasoning: "Hm." },
  "thinking that is not shown": { blocks: [{ thinking: "", signature: "sig" }, { text: "Sun." }], text: "Sun." },
  "thinking that is sealed": { blocks: [{ redacted: "data" }, { text: "Sun." }], text: "Sun." },
  "thinking and a call": { blocks: [signed("Hm."), call("toolu_1")], reasoning: "Hm.", calls: 1 },
  "thinking between calls": {
    blocks: [signed("A."), call("toolu_1"), signed("B."), call("toolu_2", "Rome")],
    reasoning: "A.B.",
    calls: 2
  },
  "sealed and shown thinking, text and calls": {
    blocks: [{ redacted: "data" }, signed("A."), { text: "I look." }, call("toolu_1"), call("toolu_2", "Rome")],
    text: "I look.",
    reasoning: "A.",
    calls: 2
  },
  "a call": { blocks: [call("toolu_1")], calls: 1 },
  "a call given whole": {
    blocks: [{ block: { type: "tool_use", id: "toolu_1", name: "get_weather", input: { of: "Paris" } } }],
    calls: 1,
    options: { stop: "tool_use" }
  },
  "calls in parallel": { blocks: [call("toolu_1"), call("toolu_2", "Rome"), call("toolu_3", "Oslo")], calls: 3 },
  "text and a call": { blocks: [{ text: "I look." }, call("toolu_1")], text: "I look.", calls: 1 },
  "a blank and a call": { blocks: [{ text: "\n" }, call("toolu_1")], text: "\n", calls: 1 },
  "a blank before thinking": {
    blocks: [{ text: "\n\n" }, signed("A."), { text: "Sun." }],
    text: "\n\nSun.",
    reasoning: "A."
  },
  "advice between blanks": {
    blocks: [{ text: "\n\n" }, { server: "advisor", id: "srvtoolu_3", input: {} }, advice, { text: "\n" }],
    text: "\n\n\n",
    kept: ["server_tool_use", "advisor_tool_result"]
  },
  "a call without input": { blocks: [{ call: "get_weather", id: "toolu_1", input: "" }], calls: 1 },
  "a search and its sources": {
    blocks: [{ text: "I look." }, search, found, { text: "It is " }, { text: "sunny.", citations: [citation] }],
    text: "I look.It is sunny.",
    kept: ["server_tool_use", "web_search_tool_result"]
  },
  "a search and a call": {
    blocks: [search, found, call("toolu_1")],
    calls: 1,
    kept: ["server_tool_use", "web_search_tool_result"]
  },
  "a paused search": {
    blocks: [{ text: "I look." }, search],
    text: "I look.",
    stop: "pause",
    options: { stop: "pause_turn" },
    kept: ["server_tool_use"]
  },
  "code that ran": {
    blocks: [
      code,
      ran({ type: "code_execution_result", stdout: "2", stderr: "", return_code: 0, content: [] }),
      { text: "2" }
    ],
    text: "2",
    kept: ["server_tool_use", "code_execution_tool_result"]
  },
  "code that called a tool": {
    blocks: [
      { ...code },
      {
        block: {
          type: "tool_use",
          id: "toolu_1",
          name: "get_weather",
          input: { of: "Paris" },
          caller: { type: "code_execution_20260120", tool_id: "srvtoolu_2" }
        }
      }
    ],
    calls: 1,
    container: "container_011",
    options: { stop: "tool_use" },
    kept: ["server_tool_use"]
  },
  "a call of another server's": {
    blocks: [
      { block: { type: "mcp_tool_use", id: "mcptoolu_1", name: "roll", server_name: "dice", input: {} } },
      {
        block: {
          type: "mcp_tool_result",
          tool_use_id: "mcptoolu_1",
          is_error: false,
          content: [{ type: "text", text: "4" }]
        }
      },
      { text: "4" }
    ],
    text: "4",
    kept: ["mcp_tool_use", "mcp_tool_result"]
  },
  "a conversation made shorter": {
    blocks: [
      { block: { type: "compaction", content: "Summary so far.", encrypted_content: null } },
      { text: "Go on." }
    ],
    text: "Go on.",
    kept: ["compaction"]
  },
  "another model's answer": {
    blocks: [
      {
        block: {
          type: "fallback",
          from: { model: "claude-fable-5-1" },
          to: { model: "claude-opus-5-5" },
          trigger: null
        }
      },
      { text: "Sun." }
    ],
    text: "Sun.",
    kept: ["fallback"]
  },
  "a cut text": { blocks: [{ text: "It is" }], text: "It is", stop: "length", options: { stop: "max_tokens" } },
  "a full context": {
    blocks: [{ text: "It" }],
    text: "It",
    stop: "length",
    options: { stop: "model_context_window_exceeded" }
  },
  "a refusal": { blocks: [{ text: "I can't." }], text: "I can't.", stop: "refusal", options: { stop: "refusal" } },
  "a stop sequence": {
    blocks: [{ text: "It is" }],
    text: "It is",
    options: { stop: "stop_sequence", stopSequence: "END" }
  }
}

const withContainer = (events: ReadonlyArray<Event>, id: string | undefined): ReadonlyArray<Event> =>
  events.map((event) =>
    event.type === "message_delta" && id !== undefined
      ? { ...event, delta: { ...(event["delta"] as object), container: { id, expires_at: "2030-01-01T00:00:00Z" } } }
      : event
  )

const tools = [tool("get_weather")]

const texts = (parts: ReadonlyArray<ChatModel.TurnPart>, tag: "TextDelta" | "ReasoningDelta"): string =>
  parts.map((part) => (part._tag === tag && "text" in part ? part.text : "")).join("")

describe("answers of the Messages API, decoded and sent back", () => {
  for (const [name, one] of Object.entries(cases)) {
    it.live(name, () =>
      Effect.gen(function* () {
        const events = withContainer(answer(one.blocks, one.options), one.container)
        const server = yield* serve(stream(events), say("ok"))
        const layer = claude(server, { serverTools: [{ type: "web_search_20260209", name: "web_search" }] })
        const parts = yield* turn(layer, request({ tools }))
        const first = message(parts)
        assert.strictEqual(Message.text(first), one.text ?? "")
        assert.strictEqual(texts(parts, "TextDelta"), one.text ?? "")
        assert.strictEqual(texts(parts, "ReasoningDelta"), one.reasoning ?? "")
        assert.strictEqual(first.toolCalls.length, one.calls ?? 0)
        assert.strictEqual(first.stopReason, one.stop ?? (one.calls === undefined ? "stop" : "toolCalls"))
        const raw = parts.flatMap((part) =>
          part._tag === "ToolCallDelta" && first.toolCalls.some(({ id }) => id === part.id) ? [part.delta] : []
        )
        const wanted = first.toolCalls.flatMap((called) =>
          Object.keys(called.arguments).length === 0 ? [] : [JSON.stringify(called.arguments)]
        )
        assert.strictEqual(raw.join(""), wanted.join(""))
        const results = first.toolCalls.map((called) =>
          Message.tool("Sun", { toolCallId: called.id, toolName: called.name })
        )
        const next = one.stop === "pause" || results.length > 0 ? [] : [Message.human("And now?")]
        const history = JSON.parse(JSON.stringify([Message.human("Hello"), first, ...results, ...next]))
        // The server refuses what is against the rules.
        yield* askToEnd(layer, request({ tools, messages: history }))
        const { body } = server.requests[1]!
        const back = body.messages[1].content as ReadonlyArray<{ readonly type: string }>
        const own = new Set(["text", "thinking", "redacted_thinking", "tool_use"])
        assert.deepStrictEqual(
          back.flatMap(({ type }) => (own.has(type) ? [] : [type])),
          one.kept ?? []
        )
        const thoughts = back.filter(({ type }) => type.endsWith("thinking")).length
        assert.strictEqual(thoughts, one.blocks.filter((block) => "thinking" in block || "redacted" in block).length)
        assert.strictEqual(body.container, one.container)
      })
    )
  }

  it.live("a block comes whole, or its text in pieces", () =>
    Effect.gen(function* () {
      const events = answer([
        { block: { type: "compaction", content: null, encrypted_content: null } },
        { text: "Go on." }
      ])
      const at = events.findIndex(({ type }) => type === "content_block_stop")
      const delta = (content: string): Event => ({
        type: "content_block_delta",
        index: 0,
        delta: { type: "compaction_delta", content, encrypted_content: null }
      })
      const server = yield* serve(
        stream([...events.slice(0, at), delta("Summary "), delta("so far."), ...events.slice(at)]),
        say("ok")
      )
      const first = yield* askToEnd(claude(server))
      yield* askToEnd(claude(server), request({ messages: [Message.human("Hello"), first, Message.human("And?")] }))
      assert.deepStrictEqual(server.requests[1]!.body.messages[1].content[0], {
        type: "compaction",
        content: "Summary so far.",
        encrypted_content: null
      })
    })
  )

  it.live("steps that are no part of the message are counted", () =>
    Effect.gen(function* () {
      const iterations = [
        {
          type: "compaction",
          input_tokens: 60_385,
          output_tokens: 522,
          cache_read_input_tokens: 0,
          cache_creation_input_tokens: 0
        },
        {
          type: "message",
          input_tokens: 612,
          output_tokens: 2_819,
          cache_read_input_tokens: 100,
          cache_creation_input_tokens: 5
        }
      ]
      const usage = {
        input_tokens: 612,
        output_tokens: 2_819,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 5
      }
      const server = yield* serve(stream(answer([{ text: "ok" }], { finalUsage: { ...usage, iterations } })))
      const { usage: counted } = yield* askToEnd(claude(server))
      assert.deepInclude(counted, {
        inputTokens: 60_385 + 612 + 100 + 5,
        outputTokens: 522 + 2_819,
        cacheReadTokens: 100,
        cacheWriteTokens: 5
      })
    })
  )

  it.live("Anthropic's own tools are used without any of the agent's, and not where none may be", () =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const layer = claude(server, { serverTools: [{ type: "web_search_20250305", name: "web_search" }] })
      yield* askToEnd(layer)
      assert.isUndefined(server.requests[0]!.body.tool_choice)
      assert.strictEqual(server.requests[0]!.body.tools.length, 1)
      yield* askToEnd(layer, request({ tools, toolChoice: "none" }))
      assert.deepStrictEqual(server.requests[1]!.body.tool_choice, { type: "none" })
    })
  )

  it.live("what a caller says of the container stays", () =>
    Effect.gen(function* () {
      const one = cases["code that called a tool"]!
      const server = yield* serve(stream(withContainer(answer(one.blocks, one.options), "container_011")), say("ok"))
      const layer = claude(server, { parameters: { container: { skills: [{ type: "anthropic", skill_id: "pptx" }] } } })
      const first = yield* askToEnd(layer, request({ tools }))
      const result = Message.tool("Sun", { toolCallId: "toolu_1", toolName: "get_weather" })
      yield* askToEnd(layer, request({ tools, messages: [Message.human("Hello"), first, result] }))
      assert.deepStrictEqual(server.requests[1]!.body.container, {
        id: "container_011",
        skills: [{ type: "anthropic", skill_id: "pptx" }]
      })
    })
  )

  it.live("a level of thinking is a level or a budget, as the model takes it", () =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const sendCase = Effect.fnUntraced(function* (
        model: string,
        thinking: AnthropicChatModel.Options["thinking"],
        parameters: Json.JsonObject = {}
      ) {
        yield* askToEnd(claude(server, { model, thinking }), request({ parameters }))
        const { max_tokens, output_config, thinking: told } = server.requests.at(-1)!.body
        return { told, effort: output_config?.effort, max_tokens }
      })
      assert.deepInclude(yield* sendCase("claude-opus-5-5", "high"), { told: { type: "adaptive" }, effort: "high" })
      assert.deepInclude(yield* sendCase("claude-opus-5-5", "off"), { told: { type: "disabled" }, effort: undefined })
      assert.deepInclude(yield* sendCase("claude-opus-5-5", { budget: 2_000 }), {
        told: { type: "adaptive" },
        effort: "low"
      })
      assert.deepInclude(yield* sendCase("claude-sonnet-4-5", "low"), {
        told: { type: "enabled", budget_tokens: 2_048 }
      })
      assert.deepInclude(yield* sendCase("claude-sonnet-4-5", { budget: 40_000 }), {
        told: { type: "enabled", budget_tokens: 40_000 },
        max_tokens: 44_096
      })
      assert.deepInclude(yield* sendCase("claude-sonnet-4-5", { budget: 1 }), {
        told: { type: "enabled", budget_tokens: 1_024 }
      })
      assert.deepInclude(yield* sendCase("claude-opus-5-5", "high", { thinking: "off" }), {
        told: { type: "disabled" }
      })
      assert.deepInclude(yield* sendCase("claude-opus-5-5", undefined, { thinking: "medium" }), { effort: "medium" })
      assert.deepInclude(yield* sendCase("claude-opus-5-5", undefined, { thinking: { type: "adaptive" } }), {
        told: { type: "adaptive" }
      })
    })
  )
})
