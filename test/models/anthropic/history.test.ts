import { Result } from "effect"
import { type ChatModel, Content, type Json, Message } from "effect-deepagents"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { profileOf } from "../../../src/models/internal/anthropic/models.ts"
import { makeEncoder } from "../../../src/models/internal/anthropic/request.ts"
import type { Settings } from "../../../src/models/internal/anthropic/settings.ts"
import { scaled } from "../../scale.ts"
import { history, type Own } from "../internal/histories.ts"
import { bodyViolations } from "../servers/anthropicRules.ts"

const tool = (name: string): ChatModel.ToolDefinition => ({
  name,
  description: "Does it, cut \uD83D",
  parameters: { type: "object", properties: { of: { type: "string" } } },
  annotations: {}
})

const request = (messages: ReadonlyArray<Message.Message>, more?: Partial<ChatModel.ModelRequest>) => ({
  messages,
  systemPrompt: "You are an agent, cut \uD83D",
  tools: [tool("search"), tool("read_file")],
  toolChoice: "auto" as const,
  parameters: {},
  cacheHints: [],
  purpose: "turn",
  ...more
})

const encoder = (settings: Settings = {}, options?: { readonly model?: string; readonly remote?: boolean }) => {
  const model = options?.model ?? "claude-opus-5-5"
  const encode = makeEncoder({
    model,
    profile: profileOf(model),
    settings,
    remote: options?.remote ?? true,
    fields: {}
  })
  return (asked: ChatModel.ModelRequest) => Result.getOrThrow(encode(asked))
}

/** What this API attached, well formed and not. */
const own: Own = {
  block: fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
    { anthropic: { signature: "sig" } },
    { anthropic: { redacted: "data" } },
    { anthropic: { signature: "" } },
    { anthropic: { signature: "cut \uD83D" } },
    { anthropic: { citations: [{ "cut \uD83D": "\uDC00" }] } },
    { anthropic: { citations: [{ type: "char_location" }, 3] } },
    { anthropic: "text" }
  ),
  call: fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
    { anthropic: {} },
    { anthropic: { caller: { type: "code_execution_20260120", tool_id: "srvtoolu_1" } } }
  ),
  message: fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
    { anthropic: { stopReason: "end_turn" } },
    { anthropic: { layout: ["said", "call", "said"] } },
    {
      anthropic: {
        container: "container_1",
        layout: ["call", { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }, "said"]
      }
    },
    {
      anthropic: {
        container: "container_1",
        layout: [{ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }]
      }
    },
    { anthropic: { layout: [{ type: "tool_result" }, 7] } },
    {
      anthropic: {
        container: "container_1",
        layout: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "cut \uD83D" } },
          { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
          "said"
        ]
      }
    },
    { anthropic: { layout: ["said", { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }] } }
  )
}

const settings: fc.Arbitrary<Settings> = fc.record(
  {
    thinking: fc.constantFrom("adaptive" as const, "off" as const, { budget: 2048, interleaved: true }),
    cache: fc.constantFrom("off" as const, { ttl: "5m" as const }, { ttl: "1h" as const })
  },
  { requiredKeys: [] }
)

const choice = fc.constantFrom<ReadonlyArray<ChatModel.ToolChoice>[number]>("auto", "none", "required", {
  tool: "search"
})

const model = fc.constantFrom("claude-opus-5-5", "claude-sonnet-4-5", "claude-haiku-5-5", "someone-elses")

const tools = fc.constantFrom([], [tool("search"), tool("read_file")], [tool("search"), tool("a b"), tool("a.b")])

describe("the history that reaches the Messages API is valid by construction", () => {
  it("any history, any settings: no rule of the API is broken", () => {
    fc.assert(
      fc.property(
        history(own),
        settings,
        choice,
        model,
        tools,
        fc.boolean(),
        (messages, set, toolChoice, id, offered, remote) => {
          const named = typeof toolChoice === "object" && offered.length === 0 ? "auto" : toolChoice
          const hints = messages.map((_, index) => index)
          const { body } = encoder(set, { model: id, remote })(
            request(messages, { toolChoice: named, tools: offered, cacheHints: hints })
          )
          expect(bodyViolations(JSON.parse(JSON.stringify(body)), remote)).toEqual([])
        }
      ),
      { numRuns: scaled(2_000) }
    )
  })

  it("a history that grows, shrinks and changes gives the same request as a fresh encoding", () => {
    fc.assert(
      fc.property(history(own), history(own), fc.nat(14), (first, second, at) => {
        const encode = encoder()
        for (let length = 0; length <= first.length; length++) encode(request(first.slice(0, length)))
        const changed = [...first.slice(0, at), ...second]
        expect(encode(request(changed)).body).toEqual(encoder()(request(changed)).body)
      }),
      { numRuns: scaled(300) }
    )
  })

  it("loses no text: every text of the conversation that the API can take is in the request", () => {
    fc.assert(
      fc.property(history(own), (messages) => {
        const raw = JSON.stringify(encoder()(request(messages)).body)
        for (const message of messages) {
          if (message.role === "tool") continue
          for (const block of message.content) {
            if (block.type !== "text" || block.text.trim() === "" || /\p{Surrogate}/u.test(block.text)) continue
            expect(raw).toContain(JSON.stringify(block.text).slice(1, -1))
          }
        }
      }),
      { numRuns: scaled(300) }
    )
  })
})

const signed = (text: string, signature: string): Content.ReasoningBlock =>
  Content.reasoning(text, { anthropic: { signature } })

const call = (id: string, name = "search", args: Json.JsonObject = {}) => ({ id, name, arguments: args })

describe("thinking", () => {
  it("goes back verbatim, signature and redacted data too, and before the call that it led to", () => {
    const messages = [
      Message.human("go"),
      Message.ai(
        [signed("first", "s1"), { type: "reasoning", text: "", providerData: { anthropic: { redacted: "r1" } } }],
        { toolCalls: [call("a")] }
      ),
      Message.tool("ok", { toolCallId: "a", toolName: "search" })
    ]
    const { body } = encoder({ thinking: "adaptive" })(request(messages))
    expect(body.messages[1]?.content).toEqual([
      { type: "thinking", thinking: "first", signature: "s1" },
      { type: "redacted_thinking", data: "r1" },
      { type: "tool_use", id: "a", name: "search", input: {} }
    ])
  })

  it("whose text was left out goes back with its signature", () => {
    const messages = [Message.human("go"), Message.ai([signed("", "s1"), Content.text("hi")]), Message.human("and?")]
    expect(encoder()(request(messages)).body.messages[1]?.content[0]).toEqual({
      type: "thinking",
      thinking: "",
      signature: "s1"
    })
  })

  it("between calls stays in its place", () => {
    const layout = ["said", "call", "said", "call"]
    const messages = [
      Message.human("go"),
      Message.ai([signed("one", "s1"), signed("two", "s2")], {
        toolCalls: [call("a"), call("b")],
        providerData: { anthropic: { layout } }
      }),
      Message.tool("1", { toolCallId: "a", toolName: "search" }),
      Message.tool("2", { toolCallId: "b", toolName: "search" })
    ]
    const types = encoder()(request(messages)).body.messages[1]?.content.map(({ type }) => type)
    expect(types).toEqual(["thinking", "tool_use", "thinking", "tool_use"])
  })

  it("of another provider, or without a signature, is not sent", () => {
    const messages = [
      Message.human("go"),
      Message.ai([
        Content.reasoning("foreign", { openai: { id: "rs_1" } }),
        Content.reasoning("interrupted"),
        Content.text("hi")
      ]),
      Message.human("and?")
    ]
    const raw = JSON.stringify(encoder()(request(messages)).body)
    expect(raw).not.toContain("foreign")
    expect(raw).not.toContain("interrupted")
  })

  it("with a budget is left out of a request that goes on with calls which another model began", () => {
    const messages = [
      Message.human("go"),
      Message.ai([], { toolCalls: [call("a")] }),
      Message.tool("1", { toolCallId: "a", toolName: "search" })
    ]
    const set = { thinking: { budget: 2048, interleaved: true } }
    const options = { model: "claude-sonnet-4-5" }
    const without = encoder(set, options)(request(messages))
    expect([without.body.thinking, without.betas]).toEqual([undefined, []])
    const next = [...messages, Message.ai("done"), Message.human("more")]
    expect(encoder(set, options)(request(next)).body.thinking).toEqual({ type: "enabled", budget_tokens: 2048 })
  })
})

describe("calls and results", () => {
  it("parallel results are in one user turn, in call order, first; a person's words come behind", () => {
    const messages = [
      Message.human("go"),
      Message.ai("", { toolCalls: [call("a"), call("b")] }),
      Message.tool("of b", { toolCallId: "b", toolName: "search" }),
      Message.tool("of a", { toolCallId: "a", toolName: "search" }),
      Message.human("by the way")
    ]
    expect(encoder({ cache: "off" })(request(messages)).body.messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "a", name: "search", input: {} },
          { type: "tool_use", id: "b", name: "search", input: {} }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "of a" }] },
          { type: "tool_result", tool_use_id: "b", content: [{ type: "text", text: "of b" }] },
          { type: "text", text: "by the way" }
        ]
      }
    ])
  })

  it("a malformed call is sent as one without arguments, with the answer that it got", () => {
    const messages = [
      Message.human("go"),
      Message.ai("", { malformedToolCalls: [{ id: "m", name: "search", raw: '{"of": ', problem: "not JSON" }] }),
      Message.tool("These are not JSON.", { toolCallId: "m", toolName: "search", isError: true })
    ]
    expect(encoder({ cache: "off" })(request(messages)).body.messages.slice(1)).toEqual([
      { role: "assistant", content: [{ type: "tool_use", id: "m", name: "search", input: {} }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "m",
            content: [{ type: "text", text: "These are not JSON." }],
            is_error: true
          }
        ]
      }
    ])
  })

  it("an image is inside a result, but behind all results if the result is an error", () => {
    const png = Content.image({ base64: "AAAA", mimeType: "image/png" })
    const messages = [
      Message.human("go"),
      Message.ai("", { toolCalls: [call("a"), call("b")] }),
      Message.tool([Content.text("shot"), png], { toolCallId: "a", toolName: "search" }),
      Message.tool([Content.text("failed"), png], { toolCallId: "b", toolName: "search", isError: true })
    ]
    const content = encoder({ cache: "off" })(request(messages)).body.messages[2]?.content ?? []
    expect(content.map(({ type }) => type)).toEqual(["tool_result", "tool_result", "text", "image"])
    expect(content[0]).toMatchObject({ content: [{ type: "text" }, { type: "image" }] })
    expect(content[1]).toMatchObject({ is_error: true, content: [{ text: "failed" }, { type: "text" }] })
  })

  it("tool names that the API refuses are sent fit, and the way back is known", () => {
    const offered = [tool("server.search"), tool("server_search")]
    const { body, names } = encoder()(request([Message.human("go")], { tools: offered }))
    const toolsSent = (body.tools ?? []).map((one) =>
      "input_schema" in one && typeof one.name === "string" ? one.name : ""
    )
    expect(new Set(toolsSent).size).toBe(2)
    expect(toolsSent.map(names.own)).toEqual(["server.search", "server_search"])
  })
})

describe("tools that run at Anthropic", () => {
  const use = { type: "server_tool_use", id: "srvtoolu_9", name: "web_search", input: { query: "q" } }
  const result = { type: "web_search_tool_result", tool_use_id: "srvtoolu_9", content: [] }
  const turn = (
    layout: ReadonlyArray<Json.Json>,
    stopReason: Message.TurnStop,
    calls: ReadonlyArray<Message.AiMessage["toolCalls"][number]> = []
  ) =>
    Message.ai("Let me look.", { stopReason, toolCalls: calls, providerData: { anthropic: { layout: [...layout] } } })
  const typesOf = (messages: ReadonlyArray<Message.Message>) =>
    encoder()(request(messages)).body.messages.map(({ content }) => content.map(({ type }) => type))

  it("their inputs go back only with their results, or if the turn goes on", () => {
    const human = Message.human("hi")
    for (const stop of ["length", "pause", "interrupted"] as const) {
      expect(typesOf([human, turn(["said", use], stop), human])).toEqual([["text"], ["text"], ["text"]])
    }
    expect(typesOf([human, turn(["said", use], "pause")])).toEqual([["text"], ["text", "server_tool_use"]])
    expect(typesOf([human, turn(["said", use], "length")])).toEqual([["text"], ["text"], ["text"]])
    expect(typesOf([human, turn(["said", use, result], "stop"), human])).toEqual([
      ["text"],
      ["text", "server_tool_use", "web_search_tool_result"],
      ["text"]
    ])
    expect(typesOf([human, turn(["said", result], "stop"), human])).toEqual([["text"], ["text"], ["text"]])
    // The result may come in a later turn: the tool ran on while its calls were answered.
    const caller = { type: "code_execution_20260120", tool_id: "srvtoolu_9" }
    const call = { id: "a", name: "search", arguments: {}, providerData: { anthropic: { caller } } }
    const calling = turn(["said", use, "call"], "toolCalls", [call])
    const answer = Message.tool("found", { toolCallId: "a", toolName: "search" })
    expect(typesOf([human, calling, answer])[1]).toEqual(["text", "server_tool_use", "tool_use"])
    expect(typesOf([human, calling, answer, turn([result, "said"], "stop"), human])[1]).toContain("server_tool_use")
    const [, left] = encoder()(request([human, calling, answer, human])).body.messages
    expect(left?.content).toEqual([
      { type: "text", text: "Let me look." },
      { type: "tool_use", id: "a", name: "search", input: {} }
    ])
  })
})

describe("images and files of which the data is damaged", () => {
  it("are left out, and the model and the caller are told", () => {
    const image = {
      type: "image" as const,
      source: { kind: "base64" as const, data: "not base64!", mimeType: "image/png" }
    }
    const url = { type: "image" as const, source: { kind: "url" as const, url: "data:image/png;base64,A" } }
    const { body, damaged } = encoder({ cache: "off" })(request([Message.human([image, url])]))
    expect(damaged).toEqual(["image (image/png)", "image"])
    expect(body.messages[0]?.content).toEqual([
      { type: "text", text: "[An image was here (image/png). Its data is damaged.]" },
      { type: "text", text: "[An image was here. Its data is damaged.]" }
    ])
  })

  it("are whole if only their base64 is broken into lines", () => {
    const image = Content.image({ base64: "AA\r\nAA\n", mimeType: "image/png" })
    const { body, damaged } = encoder({ cache: "off" })(request([Message.human([image])]))
    expect(damaged).toEqual([])
    expect(body.messages[0]?.content).toMatchObject([{ source: { type: "base64", data: "AAAA" } }])
  })
})

describe("cache breakpoints", () => {
  const findMarks = (value: unknown, path = ""): ReadonlyArray<string> => {
    if (typeof value !== "object" || value === null) return []
    const here = "cache_control" in value ? [path] : []
    return [
      ...here,
      ...Object.entries(value).flatMap(([key, one]) => findMarks(one, path === "" ? key : `${path}.${key}`))
    ]
  }
  const conversation = [
    Message.human("one"),
    Message.ai("1"),
    Message.human("two"),
    Message.ai([signed("hm", "s"), Content.text("2")]),
    Message.human("three")
  ]

  it("are on tools, system prompt and the two last ends of the history by default", () => {
    expect(findMarks(encoder()(request(conversation)).body)).toEqual([
      "system.0",
      "messages.2.content.0",
      "messages.4.content.0",
      "tools.1"
    ])
  })

  it("are at the hints of the request, the latest first, at most four", () => {
    const { body } = encoder({ cache: { ttl: "1h" } })(request(conversation, { cacheHints: [0, 3] }))
    expect(findMarks(body)).toEqual(["system.0", "messages.3.content.1", "messages.4.content.0", "tools.1"])
    expect(body.system?.[0]?.cache_control).toEqual({ type: "ephemeral", ttl: "1h" })
    const bare = encoder()(request(conversation, { cacheHints: [0, 1, 2, 3], tools: [], systemPrompt: "" }))
    expect(findMarks(bare.body)).toEqual([
      "messages.1.content.0",
      "messages.2.content.0",
      "messages.3.content.1",
      "messages.4.content.0"
    ])
  })

  it("are never on thinking", () => {
    const thought = [Message.human("one"), Message.ai([Content.text("1"), signed("hm", "s")]), Message.human("two")]
    expect(findMarks(encoder()(request(thought, { cacheHints: [1] })).body)).toContain("messages.1.content.0")
    const only = Message.ai([signed("hm", "s")], { toolCalls: [call("a")] })
    const asked = request([Message.human("one"), only, Message.tool("r", { toolCallId: "a", toolName: "search" })])
    expect(findMarks(encoder()({ ...asked, cacheHints: [1] }).body)).toContain("messages.1.content.1")
  })

  it("are on a message behind which the tools change, too", () => {
    const toolChanges = [{ after: 0, add: [tool("late")], again: [], remove: [] }]
    const { body } = encoder()(request(conversation, { cacheHints: [0], toolChanges }))
    expect(body.messages[1]?.role).toBe("system")
    expect(findMarks(body)).toContain("messages.0.content.0")
  })

  it("can be turned off", () => {
    expect(findMarks(encoder({ cache: "off" })(request(conversation)).body)).toEqual([])
  })

  it("the prefix up to a breakpoint does not change when the history grows", () => {
    const encode = encoder()
    const strip = (value: unknown) =>
      JSON.stringify(value, (key, one: unknown) => (key === "cache_control" ? undefined : one))
    const before = encode(request(conversation)).body
    const after = encode(request([...conversation, Message.ai("3"), Message.human("four")])).body
    expect(strip(after.messages.slice(0, 5))).toBe(strip(before.messages))
    expect([strip(after.system), strip(after.tools)]).toEqual([strip(before.system), strip(before.tools)])
  })

  it("a request without tools, in a conversation with calls, keeps the tools that were offered and forbids them", () => {
    const encode = encoder()
    const called = [
      Message.human("go"),
      Message.ai("", { toolCalls: [call("a")] }),
      Message.tool("1", { toolCallId: "a", toolName: "search" })
    ]
    const { tools: before } = encode(request(called)).body
    const { tool_choice, tools: after } = encode(request(called, { tools: [], toolChoice: "none" })).body
    expect(after).toEqual(before)
    expect(tool_choice).toEqual({ type: "none" })
  })
})

describe("content", () => {
  it("images, documents and files are sent in the form that the API has for them, others as a note", () => {
    const messages = [
      Message.human([
        Content.image({ url: "https://example.com/a.png" }),
        Content.image({ url: "data:image/gif;base64,R0lG" }),
        Content.image({ fileId: "file_1" }),
        Content.image({ base64: "AAAA", mimeType: "image/tiff" }),
        Content.file({ base64: "JVBE", mimeType: "application/pdf", name: "a.pdf" }),
        Content.file({ base64: Buffer.from("plain").toString("base64"), mimeType: "text/plain" }),
        Content.file({ url: "https://example.com/a.pdf" }),
        Content.file({ base64: "AAAA", mimeType: "audio/wav" })
      ])
    ]
    const content = encoder({ cache: "off" })(request(messages)).body.messages[0]?.content
    expect(content).toEqual([
      { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
      { type: "image", source: { type: "base64", media_type: "image/gif", data: "R0lG" } },
      { type: "image", source: { type: "file", file_id: "file_1" } },
      { type: "text", text: expect.stringContaining("An image was here") },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBE" }, title: "a.pdf" },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "plain" } },
      { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
      { type: "text", text: expect.stringContaining("A file was here") }
    ])
  })

  it("on a platform that fetches nothing, remote files become a note", () => {
    const messages = [Message.human([Content.text("see"), Content.image({ url: "https://example.com/a.png" })])]
    const content = encoder({ cache: "off" }, { remote: false })(request(messages)).body.messages[0]?.content
    expect(content?.map(({ type }) => type)).toEqual(["text", "text"])
  })

  it("citations go back with the text that they belong to", () => {
    const citation = { type: "char_location", cited_text: "x", document_index: 0 }
    const block = { ...Content.text("said"), providerData: { anthropic: { citations: [citation] } } }
    const messages = [Message.human("go"), Message.ai([block]), Message.human("and?")]
    expect(encoder()(request(messages)).body.messages[1]?.content).toEqual([
      { type: "text", text: "said", citations: [citation] }
    ])
  })

  it("a turn that the API paused goes back as it came, as the last message", () => {
    const server = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } }
    const messages = [
      Message.human("go"),
      Message.ai("searching", { stopReason: "pause", providerData: { anthropic: { layout: ["said", server] } } })
    ]
    expect(encoder({ cache: "off" })(request(messages)).body.messages.at(-1)).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "searching" }, server]
    })
  })
})
