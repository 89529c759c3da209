import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Content, Message } from "effect-deepagents"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import * as Server from "../servers/openai.ts"
import { ask, askAll, compatible, key, request, streamed } from "./asking.ts"
import { chatProblems } from "./rules.ts"
import { chunk, usageChunk } from "./wire.ts"

const hello = request([Message.human("hello")])

const tool = {
  name: "search",
  description: "finds",
  parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
  annotations: {}
}

const callOf = (
  index: number,
  over: { readonly id?: string; readonly name?: string; readonly arguments?: string }
) => ({
  index,
  ...(over.id === undefined ? {} : { id: over.id, type: "function" as const }),
  function: {
    ...(over.name === undefined ? {} : { name: over.name }),
    ...(over.arguments === undefined ? {} : { arguments: over.arguments })
  }
})

const text = (value: string) => [
  chunk({ role: "assistant", content: "" }),
  chunk({ content: value }),
  chunk({}, "stop")
]

describe("OpenAiCompatibleChatModel", () => {
  it.live("marks the prompt for Claude's cache if a gateway hands the marks on", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const asked = request(
        [
          Message.human("Find it."),
          Message.ai("", { toolCalls: [{ id: "c1", name: "search", arguments: { q: "a" } }] }),
          Message.tool("found", { toolCallId: "c1", toolName: "search" }),
          Message.ai("Here."),
          Message.human("And then?")
        ],
        { systemPrompt: "You search.", tools: [tool] }
      )
      const send = Effect.fnUntraced(function* (options: Partial<OpenAiCompatibleChatModel.Options>) {
        server.reply(Server.chunks([...text("ok"), usageChunk()]))
        yield* ask(compatible(server, options), asked)
        const messages: ReadonlyArray<{ readonly content: unknown }> = server.seen.at(-1)!.body.messages
        return messages.map(({ content }) => content)
      })
      const mark = (said: string) => [{ type: "text", text: said, cache_control: { type: "ephemeral" } }]
      const marked = [mark("You search."), "Find it.", null, mark("found"), "Here.", mark("And then?")]
      const claude = "anthropic/claude-sonnet-5.5"
      assert.deepStrictEqual(yield* send({ provider: "openrouter", model: claude }), marked)
      assert.deepStrictEqual(yield* send({ provider: "litellm", model: "bedrock/claude-opus-5" }), marked)
      assert.deepStrictEqual(yield* send({ model: "our-claude", cacheMarks: true }), marked)
      for (const plain of [
        { provider: "openrouter", model: claude, cacheMarks: false },
        { provider: "openrouter", model: "openai/gpt-5" },
        { model: claude }
      ]) {
        assert.notInclude(JSON.stringify(yield* send(plain)), "cache_control")
      }
    })
  )

  it.live("streams text and counts the usage", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.chunks([
          chunk({ role: "assistant", content: "" }),
          chunk({ content: "Hello, " }),
          chunk({ content: "wörld 👋" }),
          chunk({}, "stop"),
          usageChunk({ cost: 0.25 })
        ])
      )
      const outcome = yield* ask(compatible(server), hello)
      const done = outcome.message!
      assert.strictEqual(streamed(outcome, "TextDelta"), "Hello, wörld 👋")
      assert.strictEqual(Message.text(done), "Hello, wörld 👋")
      assert.strictEqual(done.stopReason, "stop")
      assert.strictEqual(done.model, "served-model")
      assert.deepStrictEqual(done.usage, {
        inputTokens: 100,
        outputTokens: 50,
        cacheReadTokens: 60,
        cacheWriteTokens: 10,
        reasoningTokens: 20,
        cost: 0.25
      })
      assert.deepStrictEqual(done.providerData, {
        "openai-compatible": { model: "served-model", stopReason: "stop", id: "chatcmpl-1" }
      })
    })
  )

  it.live("sends the set parameters and nothing else, and a key only if one was given", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.chunks(text("ok")), Server.chunks(text("ok")))
      yield* ask(OpenAiCompatibleChatModel.layer({ model: "m", baseURL: server.url }), hello)
      assert.strictEqual(server.seen[0]!.path, "/v1/chat/completions")
      assert.strictEqual(server.seen[0]!.headers.authorization, undefined)
      assert.deepStrictEqual(server.seen[0]!.body, {
        model: "m",
        messages: [{ role: "user", content: "hello" }],
        stream: true,
        stream_options: { include_usage: true }
      })
      const all = compatible(server, {
        temperature: 0.5,
        maxOutputTokens: 10,
        reasoningEffort: "low",
        stop: ["END"],
        parallelToolCalls: true,
        parameters: { top_k: 20, chat_template_kwargs: { enable_thinking: false } },
        structuredOutput: "native"
      })
      yield* ask(
        all,
        request([Message.human("hello")], {
          systemPrompt: "Be brief.",
          tools: [tool],
          toolChoice: "required",
          parameters: { stream_options: null, seed: 1 },
          outputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"] }
        })
      )
      const { headers, body } = server.seen[1]!
      assert.strictEqual(headers.authorization, `Bearer ${key}`)
      assert.deepStrictEqual(body, {
        model: "served-model",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "hello" }
        ],
        temperature: 0.5,
        max_tokens: 10,
        reasoning_effort: "low",
        stop: ["END"],
        parallel_tool_calls: true,
        top_k: 20,
        chat_template_kwargs: { enable_thinking: false },
        seed: 1,
        stream: true,
        tools: [{ type: "function", function: { name: "search", description: "finds", parameters: tool.parameters } }],
        tool_choice: "required",
        response_format: {
          type: "json_schema",
          json_schema: {
            name: "answer",
            strict: true,
            schema: {
              type: "object",
              properties: { a: { type: "string" } },
              required: ["a"],
              additionalProperties: false
            }
          }
        }
      })
      assert.deepStrictEqual(chatProblems(body), [])
    })
  )

  it.live("takes reasoning from the field that the server uses, and sends it back in the same", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      for (const field of ["reasoning_content", "reasoning"]) {
        server.reply(
          Server.chunks([
            chunk({ [field]: "Let me " }),
            chunk({ [field]: "see." }),
            chunk({ tool_calls: [callOf(0, { id: "c1", name: "search", arguments: '{"q":"x"}' })] }),
            chunk({}, "tool_calls")
          ]),
          Server.chunks(text("done"))
        )
        const model = compatible(server)
        const first = yield* ask(model, hello)
        assert.strictEqual(streamed(first, "ReasoningDelta"), "Let me see.")
        assert.strictEqual(Message.reasoning(first.message!), "Let me see.")
        const history = [
          Message.human("hello"),
          first.message!,
          Message.tool("found", { toolCallId: "c1", toolName: "search" })
        ]
        yield* ask(model, request(history, { tools: [tool] }))
        assert.deepStrictEqual(server.seen.at(-1)!.body.messages[1], {
          role: "assistant",
          content: null,
          [field]: "Let me see.",
          tool_calls: [{ id: "c1", type: "function", function: { name: "search", arguments: '{"q":"x"}' } }]
        })
      }
    })
  )

  it.live("keeps OpenRouter's reasoning details together and sends them back verbatim", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.chunks([
          chunk({
            reasoning: "Hm",
            reasoning_details: [{ type: "reasoning.text", text: "Hm", index: 0, signature: null, format: "f" }]
          }),
          chunk({
            reasoning: "m.",
            reasoning_details: [{ type: "reasoning.text", text: "m.", index: 0, signature: "sig" }]
          }),
          chunk({ reasoning_details: [{ type: "reasoning.encrypted", data: "xyz", index: 1 }] }),
          ...text("Answer")
        ]),
        Server.chunks(text("ok"))
      )
      const model = compatible(server, { provider: "openrouter" })
      const first = yield* ask(model, hello)
      yield* ask(model, request([Message.human("hello"), first.message!, Message.human("more")]))
      assert.deepStrictEqual(server.seen[1]!.body.messages[1], {
        role: "assistant",
        content: "Answer",
        reasoning_details: [
          { type: "reasoning.text", text: "Hmm.", index: 0, signature: "sig", format: "f" },
          { type: "reasoning.encrypted", data: "xyz", index: 1 }
        ]
      })
    })
  )

  it.live("takes <think> out of the text, split anywhere, with its opening tag or without", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const toChunks = (value: string) => Array.from(value, (one) => chunk({ content: one }))
      server.reply(
        Server.chunks([...toChunks("<think>\nWell <b>.\n</think>\n\nYes, <think> is a tag."), chunk({}, "stop")]),
        Server.chunks([...toChunks("Well.</think>Yes"), chunk({}, "stop")]),
        Server.chunks([...toChunks("<think>a</think>b"), chunk({}, "stop")])
      )
      const auto = yield* ask(compatible(server), hello)
      const prefilled = yield* ask(compatible(server, { thinkTags: "prefilled" }), hello)
      const off = yield* ask(compatible(server, { thinkTags: "off" }), hello)
      assert.deepStrictEqual(auto.message!.content, [
        Content.reasoning("Well <b>."),
        Content.text("Yes, <think> is a tag.")
      ])
      assert.deepStrictEqual(prefilled.message!.content, [Content.reasoning("Well."), Content.text("Yes")])
      assert.deepStrictEqual(off.message!.content, [Content.text("<think>a</think>b")])
    })
  )

  it.live("reads calls however the server numbers and names them", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const finish = chunk({}, "stop")
      server.reply(
        // OpenAI: fragments by index.
        Server.chunks([
          chunk({ tool_calls: [callOf(0, { id: "a", name: "search", arguments: "" })] }),
          chunk({ tool_calls: [callOf(0, { arguments: '{"q":' })] }),
          chunk({ tool_calls: [callOf(1, { id: "b", name: "other", arguments: '{"q"' })] }),
          chunk({ tool_calls: [callOf(0, { arguments: '"1"}' }), callOf(1, { arguments: ':"2"}' })] }),
          finish
        ]),
        // All of index 0, ids of their own.
        Server.chunks([
          chunk({ tool_calls: [callOf(0, { id: "a", name: "search", arguments: '{"q":"1"}' })] }),
          chunk({ tool_calls: [callOf(0, { id: "b", name: "other", arguments: '{"q":"2"}' })] }),
          finish
        ]),
        // The whole name in each piece.
        Server.chunks([
          chunk({ tool_calls: [callOf(0, { id: "a", name: "search", arguments: '{"q":' })] }),
          chunk({ tool_calls: [callOf(0, { id: "a", name: "search", arguments: '"1"}' })] }),
          chunk({ tool_calls: [callOf(1, { id: "b", name: "other", arguments: '{"q":"2"}' })] }),
          finish
        ]),
        // No index and no id, arguments as an object.
        Server.raw(
          [
            { choices: [{ delta: { tool_calls: [{ function: { name: "search", arguments: { q: "1" } } }] } }] },
            { choices: [{ delta: { tool_calls: [{ function: { name: "other", arguments: { q: "2" } } }] } }] },
            { choices: [{ delta: {}, finish_reason: "tool_calls" }] }
          ]
            .map((one) => `data: ${JSON.stringify(one)}\n\n`)
            .join("")
        )
      )
      const outcomes = yield* askAll(compatible(server), [hello, hello, hello, hello])
      for (const { message, parts } of outcomes) {
        assert.deepStrictEqual(
          message!.toolCalls.map((call) => [call.name, call.arguments]),
          [
            ["search", { q: "1" }],
            ["other", { q: "2" }]
          ]
        )
        assert.strictEqual(message!.stopReason, "toolCalls")
        for (const call of message!.toolCalls) {
          const deltas = parts.flatMap((part) =>
            part._tag === "ToolCallDelta" && part.id === call.id ? [part.delta] : []
          )
          assert.deepStrictEqual(JSON.parse(deltas.join("")), call.arguments)
          assert.isTrue(
            parts.some((part) => part._tag === "ToolCallStart" && part.id === call.id && part.name === call.name)
          )
        }
      }
    })
  )

  it.live("keeps malformed calls raw and says which were cut off by the length", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.chunks([
          chunk({ tool_calls: [callOf(0, { id: "a", name: "search", arguments: "{'q': 1}" })] }),
          chunk({ tool_calls: [callOf(1, { id: "b", name: "search" })] }),
          chunk({}, "tool_calls")
        ]),
        Server.chunks([
          chunk({ tool_calls: [callOf(0, { id: "a", name: "search", arguments: "{}" })] }),
          chunk({ tool_calls: [callOf(1, { id: "b", name: "search", arguments: "" })] }),
          chunk({}, "length")
        ])
      )
      const [first, second] = yield* askAll(compatible(server), [hello, hello])
      assert.deepStrictEqual(first!.message!.malformedToolCalls, [
        { id: "a", name: "search", raw: "{'q': 1}", problem: "the arguments are not a JSON object" }
      ])
      assert.deepStrictEqual(first!.message!.toolCalls, [{ id: "b", name: "search", arguments: {} }])
      assert.strictEqual(second!.message!.stopReason, "length")
      assert.strictEqual(second!.message!.toolCalls.length, 1)
      assert.include(second!.message!.malformedToolCalls[0]!.problem, "length limit")
    })
  )

  it.live("normalises reasons to finish, and keeps the raw one", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const reasons = [
        ["stop", "stop"],
        ["length", "length"],
        ["max_tokens", "length"],
        ["content_filter", "contentFilter"],
        ["eos", "stop"]
      ] as const
      for (const [raw] of reasons) {
        server.reply(
          Server.raw(`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"${raw}"}]}\n\ndata: [DONE]\n\n`)
        )
      }
      server.reply(Server.chunks([chunk({ refusal: "No." }), chunk({}, "stop")]))
      const outcomes = yield* askAll(compatible(server), [...reasons.map(() => hello), hello])
      reasons.forEach(([raw, reason], index) => {
        assert.strictEqual(outcomes[index]!.message!.stopReason, reason)
        assert.deepInclude(outcomes[index]!.message!.providerData!["openai-compatible"], { stopReason: raw })
      })
      assert.strictEqual(outcomes.at(-1)!.message!.stopReason, "refusal")
    })
  )

  it.live("sends pictures, documents and recordings, out of tool results into a message behind them", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.chunks(text("ok")))
      const picture = Content.image({ base64: "AAAA", mimeType: "image/png" })
      const history = [
        Message.system("From the start."),
        Message.human([
          Content.text("Look"),
          Content.image({ url: "https://example.com/a.png" }),
          Content.file({ base64: "BBBB", mimeType: "application/pdf" }),
          Content.file({ base64: "CCCC", mimeType: "audio/mpeg" }),
          Content.file({ fileId: "file-1" }),
          Content.file({ fileId: "file_of_another" })
        ]),
        Message.ai("", { toolCalls: [{ id: "s", name: "screenshot", arguments: {} }] }),
        Message.tool([picture], { toolCallId: "s", toolName: "screenshot" }),
        Message.system("From now on.")
      ]
      yield* ask(compatible(server, { supportsVision: true }), request(history))
      const { body } = server.seen[0]!
      assert.deepStrictEqual(chatProblems(body), [])
      assert.deepStrictEqual(body.messages, [
        { role: "system", content: "From the start." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image_url", image_url: { url: "https://example.com/a.png" } },
            { type: "file", file: { filename: "document.pdf", file_data: "data:application/pdf;base64,BBBB" } },
            { type: "input_audio", input_audio: { data: "CCCC", format: "mp3" } },
            { type: "file", file: { file_id: "file-1" } },
            {
              type: "text",
              text: "[A file was here (file id file_of_another). It could not be passed on to this model.]"
            }
          ]
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "s", type: "function", function: { name: "screenshot", arguments: "{}" } }]
        },
        { role: "tool", tool_call_id: "s", content: "(What the tool gave is in the next message.)" },
        {
          role: "user",
          content: [
            { type: "text", text: "From the result of screenshot:" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
            { type: "text", text: "<system>\nFrom now on.\n</system>" }
          ]
        }
      ])
    })
  )

  it.live("sees no pictures unless it is told that the model does", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.chunks(text("ok")))
      yield* ask(compatible(server), request([Message.human([Content.image({ url: "https://example.com/a.png" })])]))
      assert.deepStrictEqual(server.seen[0]!.body.messages, [
        { role: "user", content: "[An image was here. This model cannot see images.]" }
      ])
    })
  )

  it.live("reaches Azure's deployments", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.chunks(text("ok")))
      const azure = { endpoint: server.url.replace("/v1", ""), apiVersion: "2024-10-21", deployment: "my gpt" }
      yield* ask(
        OpenAiCompatibleChatModel.layer({ model: "gpt-5", azure, maxOutputTokens: 5, apiKey: Redacted.make(key) }),
        hello
      )
      assert.strictEqual(server.seen[0]!.path, "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21")
      assert.strictEqual(server.seen[0]!.headers["api-key"], key)
      assert.strictEqual(server.seen[0]!.body.max_completion_tokens, 5)
    })
  )
})
