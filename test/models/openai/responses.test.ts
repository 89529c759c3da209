import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import { Content, Message } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import type { ResponseOutputItem } from "openai/resources/responses/responses"
import * as Server from "../servers/openai.ts"
import { ask, askAll, key, request, responses, streamed } from "./asking.ts"
import { responsesProblems } from "./rules.ts"
import { functionCall, message, reasoning, response, responseEvents } from "./wire.ts"

const hello = request([Message.human("hello")])

const tool = (name: string) => ({
  name,
  description: `the tool ${name}`,
  parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
  annotations: {}
})

describe("OpenAiChatModel", () => {
  it.live("streams text and reasoning, and puts them together with usage, stop reason and ids", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.events(responseEvents([reasoning("rs_1", ["Greet.", "Briefly."]), message("Hello, wörld 👋")]))
      )
      const outcome = yield* ask(responses(server, { prices: { input: 1, output: 10, cacheRead: 0.1 } }), hello)
      const done = outcome.message!
      assert.strictEqual(streamed(outcome, "TextDelta"), "Hello, wörld 👋")
      assert.strictEqual(streamed(outcome, "ReasoningDelta"), "Greet.\n\nBriefly.")
      assert.strictEqual(Message.text(done), "Hello, wörld 👋")
      assert.strictEqual(Message.reasoning(done), "Greet.\n\nBriefly.")
      assert.strictEqual(done.stopReason, "stop")
      assert.strictEqual(done.model, "gpt-5-2025-08-07")
      assert.deepStrictEqual(done.providerData, { openai: { model: "gpt-5", stopReason: "completed", id: "resp_1" } })
      const { cost, ...counts } = done.usage!
      assert.deepStrictEqual(counts, {
        inputTokens: 100,
        outputTokens: 50,
        cacheReadTokens: 60,
        cacheWriteTokens: 10,
        reasoningTokens: 20
      })
      assert.closeTo(cost!, (30 * 1 + 60 * 0.1 + 10 * 1 + 50 * 10) / 1e6, 1e-12)
      assert.deepStrictEqual(yield* Message.decode(JSON.parse(JSON.stringify(Message.encode(done)))), done)
    })
  )

  it.live("sends the set parameters and nothing else, with the key in its header", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])), Server.events(responseEvents([message("ok")])))
      yield* ask(responses(server, { model: "gpt-4.1" }), hello)
      assert.deepStrictEqual(server.seen[0]!.body, {
        model: "gpt-4.1",
        input: [{ role: "user", content: "hello" }],
        store: false,
        stream: true
      })
      assert.strictEqual(server.seen[0]!.path, "/v1/responses")
      assert.strictEqual(server.seen[0]!.headers.authorization, `Bearer ${key}`)
      const all = responses(server, {
        temperature: 0.5,
        topP: 0.9,
        maxOutputTokens: 1000,
        reasoning: { effort: "low", summary: "auto" },
        verbosity: "low",
        parallelToolCalls: false,
        serviceTier: "flex",
        promptCacheKey: "cache",
        promptCacheRetention: "24h",
        safetyIdentifier: "person",
        user: "person",
        metadata: { team: "a" },
        store: true,
        parameters: { truncation: "auto", top_logprobs: 3 },
        organization: "org-1",
        project: "proj-1",
        headers: { "x-gateway": "g", "x-secret": Redacted.make("s") }
      })
      const asked = request([Message.human("hello")], {
        systemPrompt: "Be brief.",
        tools: [tool("search")],
        toolChoice: { tool: "search" },
        parameters: { temperature: 0, top_p: null, reasoningEffort: "high", maxOutputTokens: 5 }
      })
      yield* ask(all, asked)
      const { input: _, ...body } = server.seen[1]!.body
      assert.deepStrictEqual(body, {
        model: "gpt-5",
        instructions: "Be brief.",
        temperature: 0,
        max_output_tokens: 5,
        reasoning: { effort: "high", summary: "auto" },
        text: { verbosity: "low" },
        parallel_tool_calls: false,
        service_tier: "flex",
        prompt_cache_key: "cache",
        prompt_cache_retention: "24h",
        safety_identifier: "person",
        user: "person",
        metadata: { team: "a" },
        store: true,
        truncation: "auto",
        top_logprobs: 3,
        stream: true,
        tools: [
          {
            type: "function",
            name: "search",
            description: "the tool search",
            parameters: tool("search").parameters,
            strict: false
          }
        ],
        tool_choice: { type: "function", name: "search" }
      })
      const { headers } = server.seen[1]!
      assert.strictEqual(headers["openai-organization"], "org-1")
      assert.strictEqual(headers["openai-project"], "proj-1")
      assert.strictEqual(headers["x-gateway"], "g")
      assert.strictEqual(headers["x-secret"], "s")
    })
  )

  it.live("refuses a parameter that would change the history on the wire", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const values = { input: [], previous_response_id: "resp_1", conversation: "conv_1" }
      for (const [name, value] of Object.entries(values)) {
        const { error } = yield* ask(
          responses(server),
          request([Message.human("hi")], { parameters: { [name]: value } })
        )
        assert.strictEqual(error!.reason._tag, "InvalidRequest")
        assert.include(error!.message, `parameters can't set "${name}"`)
      }
      assert.strictEqual(server.seen.length, 0)
    })
  )

  it.live("carries parallel calls, and sends reasoning back encrypted, in place, to the model that thought it", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const items = [
        reasoning("rs_1", []),
        functionCall("call_a", "search", '{"q":"a"}'),
        reasoning("rs_2", ["And b."]),
        functionCall("call_b", "search", '{"q":"b"}')
      ]
      const ok = Server.events(responseEvents([message("done")]))
      server.reply(Server.events(responseEvents(items)), ok, ok, ok)
      const first = yield* ask(responses(server), request([Message.human("go")], { tools: [tool("search")] }))
      assert.deepStrictEqual(server.seen[0]!.body.include, ["reasoning.encrypted_content"])
      const turn = first.message!
      assert.strictEqual(turn.stopReason, "toolCalls")
      assert.deepStrictEqual(
        turn.toolCalls.map(({ arguments: args, id, name }) => ({ id, name, args })),
        [
          { id: "call_a", name: "search", args: { q: "a" } },
          { id: "call_b", name: "search", args: { q: "b" } }
        ]
      )
      assert.deepStrictEqual(
        first.parts.filter((part) => part._tag === "ToolCallStart").map((part) => part.id),
        ["call_a", "call_b"]
      )
      const deltas = first.parts.flatMap((part) =>
        part._tag === "ToolCallDelta" && part.id === "call_b" ? [part.delta] : []
      )
      assert.strictEqual(deltas.join(""), '{"q":"b"}')
      const history = [
        Message.human("go"),
        yield* Message.decode(Message.encode(turn)),
        Message.tool("found b", { toolCallId: "call_b", toolName: "search" }),
        Message.tool([Content.text("found a"), Content.image({ url: "https://example.com/a.png" })], {
          toolCallId: "call_a",
          toolName: "search"
        })
      ]
      const more = request(history, { tools: [tool("search")] })
      yield* ask(responses(server), more)
      yield* ask(responses(server, { model: "gpt-5-mini" }), more)
      yield* ask(responses(server, { store: true }), more)
      const [, same, other, stored] = server.seen.map((one) => one.body)
      for (const body of [same, other, stored]) assert.deepStrictEqual(responsesProblems(body), [])
      const sealed = (id: string, summary: ReadonlyArray<string>) => ({
        type: "reasoning",
        id,
        summary: summary.map((text) => ({ type: "summary_text", text })),
        encrypted_content: `sealed ${id}`
      })
      const call = (id: string, q: string) => ({
        type: "function_call",
        call_id: id,
        name: "search",
        arguments: `{"q":"${q}"}`
      })
      const results = [
        {
          type: "function_call_output",
          call_id: "call_a",
          output: [
            { type: "input_text", text: "found a" },
            { type: "input_image", detail: "auto", image_url: "https://example.com/a.png" }
          ]
        },
        { type: "function_call_output", call_id: "call_b", output: "found b" }
      ]
      assert.deepStrictEqual(same.input.slice(1), [
        sealed("rs_1", []),
        { ...call("call_a", "a"), id: "fc_call_a" },
        sealed("rs_2", ["And b."]),
        { ...call("call_b", "b"), id: "fc_call_b" },
        ...results
      ])
      assert.deepStrictEqual(other.input.slice(1), [call("call_a", "a"), call("call_b", "b"), ...results])
      assert.strictEqual(stored.include, undefined)
      assert.strictEqual(stored.input.length, same.input.length)
    })
  )

  it.live("sends reasoning that a server shows in full back to it, stored or not, and never to OpenAI", () =>
    Effect.gen(function* () {
      const thought: ResponseOutputItem = {
        type: "reasoning",
        id: "rs_1",
        summary: [],
        content: [{ type: "reasoning_text", text: "Look it up." }]
      }
      const call = functionCall("c_1", "search", "{}")
      const turnOf = Server.events(responseEvents([thought, call]))
      const ok = Server.events(responseEvents([message("ok")]))
      for (const store of [undefined, false, true]) {
        const server = yield* Server.make
        server.reply(turnOf, ok, turnOf, ok)
        const options = store === undefined ? {} : { store }
        const asked = request([Message.human("hello")], { tools: [tool("search")] })
        const nextOf = (turn: Message.AiMessage) =>
          request([...asked.messages, turn, Message.tool("found", { toolCallId: "c_1", toolName: "search" })], {
            tools: [tool("search")]
          })
        const own = yield* ask(responses(server, options), asked)
        assert.strictEqual(Message.reasoning(own.message!), "Look it up.")
        yield* ask(responses(server, options), nextOf(own.message!))
        const { input } = server.seen[1]!.body
        assert.deepStrictEqual(input[1], thought)
        assert.strictEqual(input[2].type, "function_call")
        if (store === true) continue
        // OpenAI takes encrypted reasoning alone.
        const fetchOpenAi: typeof fetch = (_, init) => fetch(`${server.url}/v1/responses`, init)
        const openAi = { baseURL: "https://api.openai.com/v1", fetch: fetchOpenAi, ...options }
        const other = yield* ask(responses(server, openAi), asked)
        yield* ask(responses(server, openAi), nextOf(other.message!))
        assert.notInclude(server.seen[3]!.text, "Look it up.")
      }
    })
  )

  it.live("costs by the tier of the answer, its searches and the gateway's own figure", () =>
    Effect.gen(function* () {
      const usage = {
        input_tokens: 1_000_000,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 1_000_000
      }
      const search = (id: string, type: string) => ({
        type: "web_search_call" as const,
        id,
        status: "completed" as const,
        action: { type, query: "weather", url: "https://example.org" } as { type: "search"; query: string }
      })
      const costOf = (over: object, items: ReadonlyArray<ResponseOutputItem> = []) =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(Server.events(responseEvents([...items, message("ok")], { usage, ...over })))
          const { message: done } = yield* ask(responses(server, { model: "gpt-6.1-sol" }), hello)
          return done?.usage?.cost ?? assert.fail("no cost")
        })
      // A long request: 4 dollars, half of it if it waits, twice if it goes before others.
      assert.closeTo(yield* costOf({ service_tier: "default" }), 4, 1e-9)
      assert.closeTo(yield* costOf({ service_tier: "flex" }), 2, 1e-9)
      assert.closeTo(yield* costOf({ service_tier: "priority" }), 8, 1e-9)
      const searches = [search("ws_1", "search"), search("ws_2", "search"), search("ws_3", "open_page")]
      assert.closeTo(yield* costOf({}, searches), 4 + 2 * 0.01, 1e-9)
      assert.strictEqual(yield* costOf({ usage: { ...usage, cost: 0.25 } }, searches), 0.25)
      assert.strictEqual(yield* costOf({ usage: { ...usage, cost: -9 } }), 0)
    })
  )

  it.live("takes the encrypted reasoning from the last event if the items came without it (Azure)", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const bare = responseEvents([reasoning("rs_1", ["Hm."], null), message("ok")])
      const last = response({ output: [reasoning("rs_1", ["Hm."]), message("ok")] })
      server.reply(
        Server.events(bare.map((event) => (event.type === "response.completed" ? { ...event, response: last } : event)))
      )
      const { message: done } = yield* ask(responses(server), hello)
      const [block] = done!.content
      assert.deepInclude(block!.providerData?.["openai"], { index: 0 })
      assert.include(JSON.stringify(block!.providerData), "sealed rs_1")
    })
  )

  it.live("keeps malformed calls raw, takes no arguments as none, and says which were cut off by the length", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.events(
          responseEvents([
            functionCall("a", "search", '{"q": nope}'),
            functionCall("b", "search", ""),
            functionCall("c", "search", "[1]"),
            functionCall("d", "search", '{"q":"x"}')
          ])
        ),
        Server.events(
          responseEvents([message("Let me look."), functionCall("e", "search", '{"q":"lo', { status: "incomplete" })], {
            status: "incomplete",
            incomplete_details: { reason: "max_output_tokens" }
          })
        )
      )
      const [first, second] = yield* askAll(responses(server), [hello, hello])
      assert.deepStrictEqual(
        first!.message!.toolCalls.map(({ arguments: args, id }) => [id, args]),
        [
          ["b", {}],
          ["d", { q: "x" }]
        ]
      )
      assert.deepStrictEqual(first!.message!.malformedToolCalls, [
        { id: "a", name: "search", raw: '{"q": nope}', problem: "the arguments are not a JSON object" },
        { id: "c", name: "search", raw: "[1]", problem: "the arguments are not a JSON object" }
      ])
      const cut = second!.message!
      assert.strictEqual(cut.stopReason, "length")
      assert.deepStrictEqual(cut.toolCalls, [])
      assert.strictEqual(cut.malformedToolCalls[0]!.raw, '{"q":"lo')
      assert.include(cut.malformedToolCalls[0]!.problem, "length limit")
      assert.deepInclude(cut.providerData!["openai"], { stopReason: "incomplete.max_output_tokens" })
    })
  )

  it.live("tells a refusal and a filtered answer from an answer", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.events(responseEvents([message("", { content: [{ type: "refusal", refusal: "I can't." }] })])),
        Server.events(
          responseEvents([message("Well")], { status: "incomplete", incomplete_details: { reason: "content_filter" } })
        )
      )
      const [refused, filtered] = yield* askAll(responses(server), [hello, hello])
      assert.strictEqual(refused!.message!.stopReason, "refusal")
      assert.strictEqual(Message.text(refused!.message!), "I can't.")
      assert.strictEqual(streamed(refused!, "TextDelta"), "I can't.")
      assert.strictEqual(filtered!.message!.stopReason, "contentFilter")
    })
  )

  it.live("goes on over events that it does not know, and over a server that leaves events out", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const known = responseEvents([message("Hello"), functionCall("a", "search", "{}")])
      const odd = [{ type: "response.telepathy.delta", delta: "?" }, ...known, { type: "response.afterthought" }]
      const few = [
        { type: "response.output_item.added", item: { type: "message", content: [] } },
        { type: "response.output_text.delta", delta: "Hel" },
        { type: "response.output_text.done", text: "Hello" },
        { type: "response.completed", response: { status: "completed" } }
      ]
      server.reply(Server.events(odd), Server.events(few))
      const [first, second] = yield* askAll(responses(server), [hello, hello])
      assert.strictEqual(Message.text(first!.message!), "Hello")
      assert.strictEqual(first!.message!.toolCalls.length, 1)
      assert.strictEqual(streamed(second!, "TextDelta"), "Hello")
      assert.strictEqual(Message.text(second!.message!), "Hello")
    })
  )

  it.live("streams the provider's own calls apart, and sends them back unchanged", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const search = {
        type: "web_search_call",
        id: "ws_1",
        status: "completed",
        action: { type: "search", query: "x" }
      } as const
      server.reply(
        Server.events(responseEvents([reasoning("rs_1", []), search, message("Found.")])),
        Server.events(responseEvents([message("ok")]))
      )
      const model = responses(server)
      const first = yield* ask(model, hello)
      assert.deepStrictEqual(
        first.parts.filter((part) => part._tag === "ToolCallStart"),
        [{ _tag: "ToolCallStart", id: "ws_1", name: "web_search", providerExecuted: true }]
      )
      assert.deepStrictEqual(first.message!.toolCalls, [])
      assert.strictEqual(first.message!.stopReason, "stop")
      yield* ask(model, request([Message.human("hello"), first.message!, Message.human("more")]))
      assert.deepStrictEqual(
        // oxlint-disable-next-line typescript/no-explicit-any
        server.seen[1]!.body.input.map((item: any) => item.type ?? item.role),
        ["user", "reasoning", "web_search_call", "assistant", "user"]
      )
    })
  )

  it.live("offers tools that OpenAI runs, for turns, with and without tools of one's own", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const drawn = {
        type: "image_generation_call",
        id: "ig_1",
        status: "completed",
        output_format: "webp",
        result: "AAAA"
      } as unknown as ResponseOutputItem
      const listed = { type: "mcp_list_tools", id: "mcpl_1", server_label: "x", tools: [] } as ResponseOutputItem
      server.reply(
        Server.events(responseEvents([listed, drawn, message("Here.")])),
        Server.events(responseEvents([message("ok")])),
        Server.events(responseEvents([message("ok")])),
        Server.events(
          responseEvents([
            { type: "mcp_approval_request", id: "mcpr_1", server_label: "deep\nwiki", name: "ask", arguments: "{}" }
          ])
        )
      )
      const serverTools = [{ type: "web_search" }, { type: "mcp", server_label: "x", server_url: "https://x.example" }]
      const model = responses(server, { serverTools })
      const own = { name: "look", description: "", parameters: { type: "object" }, annotations: {} }
      const hi = [Message.human("hello")]
      const first = yield* ask(model, request(hi))
      assert.deepStrictEqual(first.message!.content[0]?.type === "image" && first.message!.content[0].source, {
        kind: "base64",
        data: "AAAA",
        mimeType: "image/webp"
      })
      yield* ask(model, request([...hi, first.message!, ...hi], { tools: [own] }))
      yield* ask(model, request(hi, { purpose: "summary" }))
      // oxlint-disable-next-line typescript/no-explicit-any
      const tools = server.seen.map(({ body }) => body.tools?.map((tool: any) => tool.type))
      assert.deepStrictEqual(tools, [["web_search", "mcp"], ["web_search", "mcp", "function"], undefined])
      const again = JSON.stringify(server.seen[1]!.body.input)
      assert.include(again, "mcp_list_tools")
      assert.include(again, "AAAA")
      const asked = yield* ask(model, request(hi))
      assert.strictEqual(asked.error?.reason._tag, "Unsupported")
      assert.include(asked.error?.message, "mcpApproval")
    })
  )

  it.live("asks for an answer in a schema in strict mode, and takes the nulls of optional keys out again", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const outputSchema = {
        type: "object",
        properties: {
          name: { type: "string", minLength: 1 },
          age: { type: "integer" },
          note: { anyOf: [{ type: "string" }, { type: "null" }] }
        },
        required: ["name"]
      }
      server.reply(
        Server.events(responseEvents([message('{"name":"Ada","age":null,"note":null}')])),
        Server.events(responseEvents([message('{"a":1}')]))
      )
      const open = { type: "object", additionalProperties: { type: "number" } }
      const [strict, loose] = yield* askAll(responses(server), [
        request([Message.human("who?")], { outputSchema }),
        request([Message.human("who?")], { outputSchema: open })
      ])
      assert.strictEqual(Message.text(strict!.message!), '{"name":"Ada","note":null}')
      const { format } = server.seen[0]!.body.text
      assert.deepStrictEqual(responsesProblems(server.seen[0]!.body), [])
      assert.deepStrictEqual(format, {
        type: "json_schema",
        name: "answer",
        strict: true,
        schema: {
          type: "object",
          properties: {
            name: { type: "string", description: "(minLength: 1)" },
            age: { anyOf: [{ type: "integer" }, { type: "null" }] },
            note: { anyOf: [{ type: "string" }, { type: "null" }] }
          },
          required: ["name", "age", "note"],
          additionalProperties: false
        }
      })
      assert.deepStrictEqual(server.seen[1]!.body.text.format, {
        type: "json_schema",
        name: "answer",
        strict: false,
        schema: open
      })
      assert.strictEqual(Message.text(loose!.message!), '{"a":1}')
    })
  )

  it.live("gives tools names that the API takes, and their own back", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([functionCall("a", "server_search", "{}")])))
      const any = {
        ...tool("server.search"),
        parameters: { anyOf: [{ type: "object", properties: { a: { type: "string" } } }] }
      }
      const { message: done, parts } = yield* ask(
        responses(server),
        request([Message.human("go")], { tools: [any, tool("server/search")] })
      )
      assert.deepStrictEqual(responsesProblems(server.seen[0]!.body), [])
      assert.deepStrictEqual(
        // oxlint-disable-next-line typescript/no-explicit-any
        server.seen[0]!.body.tools.map((one: any) => one.name),
        ["server_search", "server_search_2"]
      )
      assert.strictEqual(done!.toolCalls[0]!.name, "server.search")
      assert.deepInclude(parts[0]!, { _tag: "ToolCallStart", name: "server.search" })
    })
  )

  it.live("reaches Azure with its key, its paths and its version", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])), Server.events(responseEvents([message("ok")])))
      const endpoint = server.url.replace("/v1", "")
      const layer = (azure: NonNullable<OpenAiChatModel.Options["azure"]>) =>
        OpenAiChatModel.layer({ model: "my-gpt", azure, apiKey: Redacted.make(key) })
      const first = yield* ask(layer({ endpoint: `${endpoint}/` }), hello)
      yield* ask(layer({ endpoint, apiVersion: "2025-04-01-preview" }), hello)
      assert.deepStrictEqual(
        server.seen.map((one) => one.path),
        ["/openai/v1/responses", "/openai/responses?api-version=2025-04-01-preview"]
      )
      for (const { headers } of server.seen) {
        assert.strictEqual(headers["api-key"], key)
        assert.strictEqual(headers.authorization, undefined)
      }
      assert.property(first.message!.providerData!, "azure-openai")
    })
  )

  it.live("uses a fetch of the caller's own, and waits no longer than it is told", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])), Server.hang)
      const urls: Array<unknown> = []
      const fetch: typeof globalThis.fetch = (input, init) => {
        urls.push(input)
        return globalThis.fetch(input, init)
      }
      yield* ask(responses(server, { fetch }), hello)
      assert.deepStrictEqual(urls, [`${server.url}/responses`])
      const began = Date.now()
      const { error } = yield* ask(responses(server, { timeout: Duration.millis(100) }), hello)
      assert.strictEqual(error!.reason._tag, "Timeout")
      assert.isBelow(Date.now() - began, 20_000)
    })
  )
})
