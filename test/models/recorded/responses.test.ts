import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Redacted } from "effect"
import { type ChatModel, Message } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import type { ResponseOutputItem, ResponseStreamEvent } from "openai/resources/responses/responses"
import { askAll, key, request, streamed } from "../openai/asking.ts"
import { responsesProblems } from "../openai/rules.ts"
import { functionCall, message, reasoning, responseEvents } from "../openai/wire.ts"
import * as Server from "../servers/openai.ts"

interface Case {
  readonly items: ReadonlyArray<ResponseOutputItem>
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: number
  readonly stop?: Message.TurnStop
  readonly over?: Parameters<typeof responseEvents>[1]
}

const said = (id: string, text: string, phase?: "commentary" | "final_answer"): ResponseOutputItem =>
  message(text, { id, ...(phase === undefined ? {} : { phase }) })

const call = (id: string, of: string): ResponseOutputItem => functionCall(id, "get_weather", JSON.stringify({ of }))

const item = (value: object): ResponseOutputItem => value as ResponseOutputItem

const search = item({
  type: "web_search_call",
  id: "ws_1",
  status: "completed",
  action: { type: "search", query: "weather", queries: ["weather"] }
})

const cited = message("", {
  id: "msg_1",
  content: [
    {
      type: "output_text",
      text: "It is sunny in Paris.",
      annotations: [{ type: "url_citation", start_index: 0, end_index: 5, url: "https://example.org/w", title: "W" }],
      logprobs: []
    }
  ]
})

const cases: Readonly<Record<string, Case>> = {
  text: { items: [said("msg_1", "It is sunny.")], text: "It is sunny." },
  "text of many scripts": { items: [said("msg_1", "Grüße 👋🏽 你好\n```\nx")], text: "Grüße 👋🏽 你好\n```\nx" },
  "reasoning and text": {
    items: [reasoning("rs_1", ["I think."]), said("msg_1", "Sun.")],
    text: "Sun.",
    reasoning: "I think."
  },
  "reasoning in several parts": {
    items: [reasoning("rs_1", ["First.", "Then."]), said("msg_1", "Sun.")],
    text: "Sun.",
    reasoning: "First.\n\nThen."
  },
  "reasoning that is not shown": { items: [reasoning("rs_1", []), said("msg_1", "Sun.")], text: "Sun." },
  "reasoning that is not sealed": {
    items: [reasoning("rs_1", ["Hm."], null), said("msg_1", "Sun.")],
    text: "Sun.",
    reasoning: "Hm."
  },
  "reasoning and a call": {
    items: [reasoning("rs_1", ["I look."]), call("call_1", "Paris")],
    reasoning: "I look.",
    calls: 1
  },
  "reasoning that is not sealed, and a call": {
    items: [reasoning("rs_1", [], null), call("call_1", "Paris")],
    calls: 1
  },
  "reasoning between calls": {
    items: [reasoning("rs_1", ["A."]), call("call_1", "Paris"), reasoning("rs_2", ["B."]), call("call_2", "Rome")],
    reasoning: "A.B.",
    calls: 2
  },
  "a call": { items: [call("call_1", "Paris")], calls: 1 },
  "calls in parallel": { items: [call("call_1", "Paris"), call("call_2", "Rome"), call("call_3", "Oslo")], calls: 3 },
  "text and a call": { items: [said("msg_1", "I look."), call("call_1", "Paris")], text: "I look.", calls: 1 },
  "a call without arguments": { items: [functionCall("call_1", "list_cities", "{}")], calls: 1 },
  "a call of a set of tools": { items: [functionCall("call_1", "get_weather", "{}", { namespace: "crm" })], calls: 1 },
  "a call that a program made": {
    items: [item({ ...functionCall("call_1", "get_weather", "{}"), caller: { type: "program", caller_id: "prog_1" } })],
    calls: 1
  },
  "commentary and an answer": {
    items: [said("msg_1", "I put it together.", "commentary"), said("msg_2", "It is sunny.", "final_answer")],
    text: "I put it together.\n\nIt is sunny."
  },
  "reasoning, commentary and a call": {
    items: [reasoning("rs_1", ["Hm."]), said("msg_1", "I look.", "commentary"), call("call_1", "Paris")],
    text: "I look.",
    reasoning: "Hm.",
    calls: 1
  },
  "a search and its sources": { items: [search, cited], text: "It is sunny in Paris." },
  "reasoning, a search and its sources": {
    items: [reasoning("rs_1", ["Hm."]), search, reasoning("rs_2", ["So."]), cited],
    text: "It is sunny in Paris.",
    reasoning: "Hm.So."
  },
  "a search of files": {
    items: [
      item({ type: "file_search_call", id: "fs_1", status: "completed", queries: ["w"], results: null }),
      said("msg_1", "Sun.")
    ],
    text: "Sun."
  },
  "code that ran": {
    items: [
      item({
        type: "code_interpreter_call",
        id: "ci_1",
        status: "completed",
        code: "1+1",
        container_id: "cntr_1",
        outputs: null
      }),
      said("msg_1", "2")
    ],
    text: "2"
  },
  "a call of another server's": {
    items: [
      item({ type: "mcp_list_tools", id: "mcpl_1", server_label: "s", tools: [] }),
      item({
        type: "mcp_call",
        id: "mcp_1",
        server_label: "s",
        name: "roll",
        arguments: "{}",
        output: "4",
        error: null
      }),
      said("msg_1", "4")
    ],
    text: "4"
  },
  "a refusal": {
    items: [message("", { id: "msg_1", content: [{ type: "refusal", refusal: "I can't." }] })],
    text: "I can't.",
    stop: "refusal"
  },
  "a cut text": {
    items: [said("msg_1", "It is")],
    text: "It is",
    stop: "length",
    over: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
  },
  "a filtered text": {
    items: [said("msg_1", "It")],
    text: "It",
    stop: "contentFilter",
    over: { status: "incomplete", incomplete_details: { reason: "content_filter" } }
  }
}

type Events = ReadonlyArray<ResponseStreamEvent>

const isStructure = ({ type }: ResponseStreamEvent): boolean =>
  type === "response.created" || type === "response.completed" || type === "response.incomplete"

/** The ways in which servers stream one and the same response. */
const streams: Readonly<Record<string, (events: Events) => Events>> = {
  "as documented": (events) => events,
  "in the end only": (events) => events.filter(isStructure),
  "with gaps between places": (events) =>
    events.map((event) => ("output_index" in event ? { ...event, output_index: event.output_index * 2 } : event)),
  "without deltas": (events) => events.filter(({ type }) => !type.endsWith(".delta"))
}

interface Place {
  readonly stored: boolean
  readonly model: (server: Server.Server) => Layer.Layer<ChatModel.ChatModel, unknown>
}

const apiKey = Redacted.make(key)

const places: Readonly<Record<string, Place>> = {
  "openai, by name": {
    stored: false,
    model: ({ url }) => OpenAiChatModel.layer({ model: "gpt-5.5", baseURL: url, apiKey })
  },
  "azure, a deployment": {
    stored: false,
    model: ({ url }) => OpenAiChatModel.layer({ model: "prod-assistant", azure: { endpoint: url }, apiKey })
  },
  "openai, a fine-tune": {
    stored: false,
    model: ({ url }) => OpenAiChatModel.layer({ model: "ft:gpt-5-mini:org::abc", baseURL: url, apiKey })
  },
  "openai, stored": {
    stored: true,
    model: ({ url }) => OpenAiChatModel.layer({ model: "gpt-5.5", baseURL: url, apiKey, store: true })
  }
}

const definition = (name: string): ChatModel.ToolDefinition => ({
  name,
  description: "",
  parameters: { type: "object", properties: { of: { type: "string" } } },
  annotations: {}
})

const tools = [definition("get_weather"), definition("list_cities")]

const all = Object.entries(cases).flatMap(([name, one]) =>
  Object.entries(streams).map(([how, cut]) => ({
    say: `${name}, ${how}`,
    one,
    events: cut(responseEvents(one.items, one.over))
  }))
)

const wanted = (one: Case): Message.TurnStop => one.stop ?? (one.calls === undefined ? "stop" : "toolCalls")

describe("answers of the Responses API, decoded and sent back", () => {
  for (const [where, { model, stored }] of Object.entries(places)) {
    it.live(where, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(...all.map(({ events }) => Server.events(events)))
        const outcomes = yield* askAll(
          model(server),
          all.map(() => request([Message.human("Weather?")], { tools }))
        )
        const histories = all.map(({ one, say }, index) => {
          const outcome = outcomes[index]!
          assert.isUndefined(outcome.error, say)
          const message = outcome.message!
          assert.strictEqual(Message.text(message), one.text ?? "", say)
          assert.strictEqual(streamed(outcome, "TextDelta"), one.text ?? "", say)
          assert.strictEqual(
            message.content.map((block) => (block.type === "reasoning" ? block.text : "")).join(""),
            one.reasoning ?? "",
            say
          )
          assert.strictEqual(streamed(outcome, "ReasoningDelta"), one.reasoning ?? "", say)
          assert.strictEqual(message.toolCalls.length, one.calls ?? 0, say)
          assert.strictEqual(message.stopReason, wanted(one), say)
          const begun = outcome.parts.flatMap((part) =>
            part._tag === "ToolCallStart" && part.providerExecuted !== true ? [part.id] : []
          )
          assert.deepStrictEqual(
            begun,
            message.toolCalls.map(({ id }) => id),
            say
          )
          return JSON.parse(
            JSON.stringify([
              Message.human("Weather?"),
              message,
              ...message.toolCalls.map(({ id, name }) => Message.tool("Sun", { toolCallId: id, toolName: name })),
              Message.human("And now?")
            ])
          ) as ReadonlyArray<Message.Message>
        })
        const before = server.seen.length
        server.reply(...all.map(() => Server.events(responseEvents([said("msg_9", "ok")]))))
        yield* askAll(
          model(server),
          histories.map((messages) => request(messages, { tools }))
        )
        for (const [index, { one, say }] of all.entries()) {
          const { body } = server.seen[before + index]!
          assert.deepStrictEqual(responsesProblems(body), [], say)
          const back = body.input.filter(
            (sent: { readonly type?: string; readonly role?: string }) => sent.role !== "user"
          )
          const texts = back.flatMap((sent: { readonly role?: string; readonly content?: unknown }) =>
            sent.role !== "assistant"
              ? []
              : typeof sent.content === "string"
                ? [sent.content]
                : (sent.content as ReadonlyArray<{ readonly text: string }>).map(({ text }) => text)
          )
          const meant = one.items.flatMap((sent) =>
            sent.type === "message"
              ? sent.content.map((part) => (part.type === "output_text" ? part.text : part.refusal))
              : []
          )
          assert.deepStrictEqual(texts, meant, `${say}: the words`)
          const kinds = back.flatMap((sent: { readonly type?: string; readonly role?: string }) =>
            sent.type === "function_call_output" ? [] : [sent.type ?? "message"]
          )
          const expected = one.items.flatMap((sent) =>
            sent.type === "reasoning" && !stored && sent.encrypted_content === null ? [] : [sent.type]
          )
          assert.deepStrictEqual(kinds, expected, `${say}: the items, in their order`)
        }
      })
    )
  }

  it.live("a deployment that turns out to reason is asked for its reasoning from then on", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const over = { model: "gpt-5-2025-08-07" }
      server.reply(
        Server.events(responseEvents([call("call_1", "Paris")], over)),
        Server.events(responseEvents([said("msg_1", "ok")], over))
      )
      const layer = places["azure, a deployment"]!.model(server)
      const [outcome] = yield* askAll(layer, [request([Message.human("Weather?")], { tools })])
      const history = [
        Message.human("Weather?"),
        outcome!.message!,
        Message.tool("Sun", { toolCallId: "call_1", toolName: "get_weather" })
      ]
      yield* askAll(layer, [request(history, { tools })])
      assert.isUndefined(server.seen[0]!.body.include)
      assert.deepStrictEqual(server.seen[1]!.body.include, ["reasoning.encrypted_content"])
    })
  )

  it.live("a call goes back with its set of tools, and with who made it", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const model = places["openai, by name"]!.model(server)
      for (const name of ["a call of a set of tools", "a call that a program made"]) {
        const one = cases[name]!
        server.reply(Server.events(responseEvents(one.items)), Server.events(responseEvents([said("msg_1", "ok")])))
        const [outcome] = yield* askAll(model, [request([Message.human("?")], { tools })])
        const answer = Message.tool("Sun", { toolCallId: "call_1", toolName: "get_weather" })
        yield* askAll(model, [request([Message.human("?"), outcome!.message!, answer], { tools })])
        const { status: _, ...meant } = one.items[0] as { readonly status: string }
        assert.deepInclude(server.seen.at(-1)!.body.input, meant)
      }
    })
  )

  it.live("a level of thinking becomes an effort that the model takes", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const sent = Effect.fnUntraced(function* (
        model: string,
        options: Partial<OpenAiChatModel.Options>,
        level?: string
      ) {
        server.reply(Server.events(responseEvents([said("msg_1", "ok")])))
        const layer = OpenAiChatModel.layer({ model, baseURL: server.url, apiKey, ...options })
        yield* askAll(layer, [
          request([Message.human("?")], { parameters: level === undefined ? {} : { thinking: level } })
        ])
        return server.seen.at(-1)!.body.reasoning
      })
      assert.deepStrictEqual(yield* sent("gpt-5.5", { thinking: "off" }), { effort: "none" })
      assert.deepStrictEqual(yield* sent("gpt-5", { thinking: "off" }), { effort: "minimal" })
      assert.deepStrictEqual(yield* sent("o3", { thinking: { budget: 1_000 } }), { effort: "low" })
      assert.deepStrictEqual(yield* sent("gpt-5-pro", { thinking: "low" }), { effort: "high" })
      assert.deepStrictEqual(yield* sent("gpt-5.5", { thinking: "high", reasoning: { summary: "auto" } }), {
        effort: "high",
        summary: "auto"
      })
      assert.deepStrictEqual(yield* sent("gpt-5.5", { thinking: "high" }, "low"), { effort: "low" })
      assert.isUndefined(yield* sent("gpt-4.1", { thinking: "high" }))
      assert.isUndefined(yield* sent("gpt-5.5", {}))
    })
  )
})
