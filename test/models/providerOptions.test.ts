/** Options of one provider on tools and messages, as they come to the wire, and the choice "one of these". */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Agent, type ChatModel, Content, Message, Middleware, type ProviderOptions, Tool } from "effect-deepagents"
import type * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import type * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import { gemini } from "./ai-sdk/models.ts"
import * as Claude from "./anthropic/asking.ts"
import { askAll, compatible, type Outcome, request, responses } from "./openai/asking.ts"
import { chunk, functionCall, message, responseEvents, usageChunk } from "./openai/wire.ts"
import * as Anthropic from "./servers/anthropic.ts"
import * as OpenAi from "./servers/openai.ts"

const define = (name: string, providerOptions?: ProviderOptions.ToolOptions): ChatModel.ToolDefinition => ({
  name,
  description: `Does ${name}.`,
  parameters: { type: "object", properties: {}, additionalProperties: false },
  annotations: {},
  ...(providerOptions === undefined ? {} : { providerOptions })
})

const hello: ReadonlyArray<Message.Message> = [Message.human("Hello")]
const ok = OpenAi.events(responseEvents([message("ok")]))

/** The request that OpenAI's Responses API gets. */
const openai = Effect.fnUntraced(function* (
  over: Partial<ChatModel.ModelRequest>,
  options: Partial<OpenAiChatModel.Options> = {}
) {
  const server = yield* OpenAi.make
  server.reply(ok)
  const [outcome] = yield* askAll(responses(server, options), [request(over.messages ?? hello, over)])
  return { body: server.seen[0]?.body, outcome: outcome as Outcome }
})

/** The request that Anthropic's Messages API gets. */
const claude = Effect.fnUntraced(function* (
  over: Partial<ChatModel.ModelRequest>,
  options: Partial<AnthropicChatModel.Options> = {}
) {
  const server = yield* Anthropic.serve(Anthropic.say("ok"))
  const [outcome] = yield* askAll(Claude.claude(server, options), [request(over.messages ?? hello, over)])
  return { body: server.requests[0]?.body, outcome: outcome as Outcome }
})

const deferred: ProviderOptions.ToolOptions = { anthropic: { deferLoading: true }, openai: { deferLoading: true } }

describe("options of a tool", () => {
  it.live("Claude loads a deferred tool by its own search, which comes by itself", () =>
    Effect.gen(function* () {
      const { body } = yield* claude({ tools: [define("now"), define("later", deferred)] })
      assert.deepStrictEqual(
        body.tools.map((tool: object) => ({ ...tool, description: undefined, input_schema: undefined })),
        [
          { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
          { name: "now", cache_control: { type: "ephemeral" } },
          { name: "later", defer_loading: true }
        ].map((tool) => ({ ...tool, description: undefined, input_schema: undefined }))
      )
    })
  )

  it.live("OpenAI loads a deferred tool by its own search, and a search of the caller's is the only one", () =>
    Effect.gen(function* () {
      const tools = [define("now"), define("later", deferred)]
      const { body } = yield* openai({ tools })
      assert.deepStrictEqual(
        body.tools.map(({ defer_loading, name, type }: Record<string, unknown>) => [type, name, defer_loading]),
        [
          ["function", "now", undefined],
          ["function", "later", true],
          ["tool_search", undefined, undefined]
        ]
      )
      const own = yield* openai({ tools }, { serverTools: [{ type: "tool_search", execution: "server" }] })
      assert.strictEqual(own.body.tools.filter(({ type }: { type: string }) => type === "tool_search").length, 1)
    })
  )

  it.live("a namespace holds its tools under one description", () =>
    Effect.gen(function* () {
      const namespace = { name: "crm", description: "Customers." }
      const { body } = yield* openai({
        tools: [
          define("find", { openai: { namespace, deferLoading: true } }),
          define("other"),
          define("save", { openai: { namespace } })
        ]
      })
      const [crm, other, search] = body.tools
      assert.deepStrictEqual([crm.type, crm.name, crm.description], ["namespace", "crm", "Customers."])
      assert.deepStrictEqual(
        crm.tools.map(({ defer_loading, name }: Record<string, unknown>) => [name, defer_loading]),
        [
          ["find", true],
          ["save", undefined]
        ]
      )
      assert.strictEqual(other.name, "other")
      assert.strictEqual(search.type, "tool_search")
    })
  )

  it.live("code calls a tool that allows it, by the version of code execution in the request", () =>
    Effect.gen(function* () {
      const tools = [define("add", { anthropic: { allowedCallers: ["direct", "code_execution"] } })]
      const serverTools = [{ type: "code_execution_20260120", name: "code_execution" }]
      const { body } = yield* claude({ tools }, { serverTools })
      assert.deepStrictEqual(body.tools[1].allowed_callers, ["direct", "code_execution_20260120"])
      const { outcome } = yield* claude({ tools })
      assert.strictEqual(outcome.error?.reason._tag, "Unsupported")
      assert.include(outcome.error?.message ?? "", "serverTools")
    })
  )

  it.live("a program calls a tool that allows it, and gets the output of its own call", () =>
    Effect.gen(function* () {
      const tools = [define("add", { openai: { allowedCallers: ["programmatic"], async: true } })]
      const caller = { type: "program", caller_id: "prog_1" }
      const program = { type: "program", id: "p", call_id: "prog_1", code: "add()", fingerprint: "f" }
      const call = { ...functionCall("c1", "add", "{}"), caller, async: true }
      const server = yield* OpenAi.make
      // The events of the test's wire know no programs.
      const output = [program, call] as unknown as Parameters<typeof responseEvents>[0]
      server.reply(OpenAi.events(responseEvents(output)), ok)
      const layer = responses(server)
      const [first] = yield* askAll(layer, [request(hello, { tools })])
      const turn = first?.message ?? assert.fail("no turn")
      yield* askAll(layer, [
        request([...hello, turn, Message.tool("3", { toolCallId: "c1", toolName: "add" })], { tools })
      ])
      assert.deepStrictEqual(server.seen[0]?.body.tools[0].allowed_callers, ["programmatic"])
      assert.strictEqual(server.seen[0]?.body.tools[0].async, true)
      assert.strictEqual(server.seen[0]?.body.tools[1].type, "programmatic_tool_calling")
      const [, , again, answer] = server.seen[1]!.body.input
      assert.deepStrictEqual([again.caller, again.async], [caller, true])
      assert.deepStrictEqual(answer, { type: "function_call_output", call_id: "c1", output: "3", caller })
    })
  )

  it.live("Claude streams arguments eagerly, and reads examples and cache marks", () =>
    Effect.gen(function* () {
      const { body } = yield* claude({
        tools: [
          define("write", {
            anthropic: { eagerInputStreaming: true, inputExamples: [{ a: 1 }], cacheControl: { ttl: "1h" } }
          }),
          define("read")
        ]
      })
      assert.strictEqual(body.tools[0].eager_input_streaming, true)
      assert.deepStrictEqual(body.tools[0].input_examples, [{ a: 1 }])
      assert.deepStrictEqual(body.tools[0].cache_control, { type: "ephemeral", ttl: "1h" })
      assert.isUndefined(body.tools[1].cache_control)
    })
  )

  it.live("an adapter sends no options of another provider", () =>
    Effect.gen(function* () {
      const tools = [define("later", deferred)]
      const server = yield* OpenAi.make
      server.reply(
        OpenAi.chunks([chunk({ content: "ok" }, "stop"), usageChunk()]),
        OpenAi.raw(gemini([{ text: "ok" }], "STOP", {}))
      )
      yield* askAll(compatible(server), [request(hello, { tools })])
      yield* askAll(
        GeminiChatModel.layer({ model: "gemini-3.5-flash", baseURL: server.url, apiKey: Redacted.make("k") }),
        [request(hello, { tools })]
      )
      assert.notMatch(server.seen.map(({ text }) => text).join(), /defer|providerOptions/i)
      assert.strictEqual(server.seen.length, 2)
      const { body } = yield* claude({ tools: [define("later", { openai: { deferLoading: true } })] })
      assert.strictEqual(body.tools.length, 1)
    })
  )

  it.effect("a misspelt option keeps the agent from running, however the tool was made", () =>
    Effect.gen(function* () {
      const options = { description: "d", parameters: {}, execute: () => Effect.succeed("") }
      const wrong = { anthropic: { deferLoadin: true } } as ProviderOptions.ToolOptions
      const provider = { antropic: { deferLoading: true } } as ProviderOptions.ToolOptions
      const tools = [
        Tool.make("t", { ...options, providerOptions: wrong }),
        Tool.dynamic("t", { ...options, parameters: { type: "object" }, providerOptions: wrong }),
        { ...Tool.make("t", options), providerOptions: wrong }
      ]
      for (const tool of tools) {
        const agent = Agent.make({ name: "a", prompt: "", tools: [tool] })
        const error = yield* Effect.flip(Agent.run(agent, "Hi"))
        assert.include(error.message, "deferLoading")
      }
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [Tool.make("t", { ...options, providerOptions: provider })]
      })
      assert.include((yield* Effect.flip(Agent.run(agent, "Hi"))).message, "anthropic")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})

describe("options of a message", () => {
  const markCache = (ttl?: "5m" | "1h") =>
    Message.human("Long text", { providerOptions: { anthropic: { cacheControl: ttl === undefined ? {} : { ttl } } } })

  it.live("Claude caches at a message that asks for it; longer lifetimes stand before shorter ones", () =>
    Effect.gen(function* () {
      const turns = [
        Message.human("One"),
        Message.ai("Two"),
        markCache("1h"),
        Message.ai("Four"),
        Message.human("Five")
      ]
      const { body } = yield* claude({ messages: turns, systemPrompt: "S", tools: [define("t")] })
      const marks = body.messages.map(
        ({ content }: { content: Array<Record<string, unknown>> }) => content.at(-1)?.["cache_control"]
      )
      assert.deepStrictEqual(marks, [
        undefined,
        undefined,
        { type: "ephemeral", ttl: "1h" },
        undefined,
        { type: "ephemeral" }
      ])
      assert.deepStrictEqual(body.system.at(-1).cache_control, { type: "ephemeral", ttl: "1h" })
      assert.deepStrictEqual(body.tools.at(-1).cache_control, { type: "ephemeral", ttl: "1h" })
    })
  )

  it.live("a mark of one's own stays where automatic caching is off, and four marks are the most", () =>
    Effect.gen(function* () {
      const off = yield* claude({ messages: [markCache(), Message.ai("a"), Message.human("b")] }, { cache: "off" })
      assert.deepStrictEqual(JSON.stringify(off.body).match(/"cache_control":/g)?.length, 1)
      const many = Array.from({ length: 6 }, () => [markCache(), Message.ai("a")]).flat()
      const { body, outcome } = yield* claude({ messages: [...many, Message.human("b")], systemPrompt: "S" })
      assert.isUndefined(outcome.error)
      assert.strictEqual(JSON.stringify(body).match(/"cache_control":/g)?.length, 4)
    })
  )

  it.live("documents of a message may be cited", () =>
    Effect.gen(function* () {
      const file = Content.file({ base64: "aGk=", mimeType: "text/plain", name: "a.txt" })
      const document = Message.human([file], { providerOptions: { anthropic: { citations: true } } })
      const { body } = yield* claude({ messages: [document] })
      assert.deepStrictEqual(body.messages[0].content[0].citations, { enabled: true })
    })
  )

  it.live("OpenAI gets cache marks and the detail of images", () =>
    Effect.gen(function* () {
      const call = Message.ai("", { toolCalls: [{ id: "c", name: "t", arguments: {} }] })
      const openai12h = { openai: { cacheBreakpoint: { ttl: "12h" } } } as const
      const { body } = yield* openai({
        tools: [define("t")],
        messages: [
          Message.human("Rules", { providerOptions: { openai: { cacheBreakpoint: {} } } }),
          call,
          Message.tool("Result", { toolCallId: "c", toolName: "t", providerOptions: openai12h }),
          Message.human("Look", {
            images: [{ url: "https://example.com/a.png" }],
            providerOptions: { openai: { imageDetail: "low" } }
          })
        ]
      })
      const [rules, , result, look] = body.input
      assert.deepStrictEqual(rules.content, [
        { type: "input_text", text: "Rules", prompt_cache_breakpoint: { mode: "explicit" } }
      ])
      assert.deepStrictEqual(result.output, [
        { type: "input_text", text: "Result", prompt_cache_breakpoint: { mode: "explicit", ttl: "12h" } }
      ])
      assert.deepStrictEqual(look.content[1], {
        type: "input_image",
        detail: "low",
        image_url: "https://example.com/a.png"
      })
    })
  )

  it.live("refuses a misspelt option before the request, also of a stored message", () =>
    Effect.gen(function* () {
      const wrong = { openai: { cacheBreakpont: {} } } as ProviderOptions.MessageOptions
      const stored = yield* Message.decode(Message.encode(Message.human("Hi", { providerOptions: wrong })))
      const { body, outcome } = yield* openai({ messages: [stored] })
      assert.isUndefined(body)
      assert.strictEqual(outcome.error?.reason._tag, "InvalidRequest")
      assert.include(outcome.error?.message ?? "", "cacheBreakpoint")
    })
  )
})

describe("the choice of one of these", () => {
  const tools = [define("a"), define("b"), define("c")]
  const toolChoice = { oneOf: ["a", "c"] } as const

  it.live("names that no tool has are left out, and a choice without a tool lets none be called", () =>
    Effect.gen(function* () {
      const named = yield* openai({ tools, toolChoice: { oneOf: ["a", "gone"] } })
      assert.deepStrictEqual(named.body.tool_choice.tools, [{ type: "function", name: "a" }])
      const server = yield* OpenAi.make
      const layer = GeminiChatModel.layer({
        model: "gemini-3.5-flash",
        baseURL: server.url,
        apiKey: Redacted.make("k")
      })
      for (const oneOf of [[], ["gone"]]) {
        const none = yield* openai({ tools, toolChoice: { oneOf } })
        assert.strictEqual(none.body.tool_choice, "none")
        server.reply(OpenAi.raw(gemini([{ text: "ok" }], "STOP", {})))
        yield* askAll(layer, [request(hello, { tools, toolChoice: { oneOf } })])
        assert.deepStrictEqual(server.seen.at(-1)?.body.toolConfig, { functionCallingConfig: { mode: "NONE" } })
      }
    })
  )

  it.live("OpenAI and Gemini keep all tools and name the allowed ones", () =>
    Effect.gen(function* () {
      const { body } = yield* openai({ tools, toolChoice })
      assert.strictEqual(body.tools.length, 3)
      assert.deepStrictEqual(body.tool_choice, {
        type: "allowed_tools",
        mode: "required",
        tools: [
          { type: "function", name: "a" },
          { type: "function", name: "c" }
        ]
      })
      const server = yield* OpenAi.make
      server.reply(OpenAi.raw(gemini([{ text: "ok" }], "STOP", {})))
      const parameters = { toolConfig: { functionCallingConfig: { streamFunctionCallArguments: true } } }
      yield* askAll(
        GeminiChatModel.layer({
          model: "gemini-3.5-flash",
          baseURL: server.url,
          apiKey: Redacted.make("k"),
          parameters
        }),
        [request(hello, { tools, toolChoice: { ...toolChoice, mode: "auto" } })]
      )
      assert.deepStrictEqual(server.seen[0]?.body.toolConfig.functionCallingConfig, {
        streamFunctionCallArguments: true,
        mode: "VALIDATED",
        allowedFunctionNames: ["a", "c"]
      })
    })
  )

  it.live("the other APIs get these tools alone", () =>
    Effect.gen(function* () {
      const { body } = yield* claude({ tools, toolChoice }, { model: "claude-sonnet-4-5" })
      assert.deepStrictEqual(
        body.tools.map(({ name }: { name: string }) => name),
        ["a", "c"]
      )
      assert.deepStrictEqual(body.tool_choice, { type: "any" })
      const server = yield* OpenAi.make
      server.reply(OpenAi.chunks([chunk({ content: "ok" }, "stop"), usageChunk()]))
      yield* askAll(compatible(server), [request(hello, { tools, toolChoice })])
      assert.strictEqual(server.seen[0]?.body.tools.length, 2)
      assert.strictEqual(server.seen[0]?.body.tool_choice, "required")
    })
  )

  it.effect("a call of another tool does not run", () =>
    Effect.gen(function* () {
      let ran = 0
      const tool = (name: string) =>
        Tool.make(name, {
          description: "d",
          parameters: { x: Schema.optionalKey(Schema.String) },
          execute: () => `${++ran}`
        })
      const narrow = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool("a"), tool("b")],
        middleware: [
          Middleware.make({
            name: "Narrow",
            wrapModelCall: (asked, next) => next({ ...asked, toolChoice: { oneOf: ["a"], mode: "auto" } })
          })
        ]
      })
      const result = yield* Agent.run(narrow, "Hi")
      assert.strictEqual(ran, 0)
      const answer = result.messages.find(({ role }) => role === "tool")
      assert.include(answer === undefined ? "" : Message.text(answer), 'There is no tool "b" now')
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "b", arguments: {} }]), "done"])))
  )
})
