/** The responses of OpenAI, as a table: content × streaming. */
import type { Message } from "effect-deepagents"
import type { ResponseOutputItem, ResponseStreamEvent } from "openai/resources/responses/responses"
import { functionCall, message, reasoning, type responseEvents } from "../openai/wire.ts"

/** One response, and its meaning. */
export interface Case {
  readonly items: ReadonlyArray<ResponseOutputItem>
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: number
  readonly stop?: Message.TurnStop
  readonly over?: Parameters<typeof responseEvents>[1]
}

export const makeText = (id: string, text: string, phase?: "commentary" | "final_answer"): ResponseOutputItem =>
  message(text, { id, ...(phase === undefined ? {} : { phase }) })

export const call = (id: string, of: string): ResponseOutputItem =>
  functionCall(id, "get_weather", JSON.stringify({ of }))

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

export const cases: Readonly<Record<string, Case>> = {
  text: { items: [makeText("msg_1", "It is sunny.")], text: "It is sunny." },
  "text of many scripts": { items: [makeText("msg_1", "Grüße 👋🏽 你好\n```\nx")], text: "Grüße 👋🏽 你好\n```\nx" },
  "reasoning and text": {
    items: [reasoning("rs_1", ["I think."]), makeText("msg_1", "Sun.")],
    text: "Sun.",
    reasoning: "I think."
  },
  "reasoning in several parts": {
    items: [reasoning("rs_1", ["First.", "Then."]), makeText("msg_1", "Sun.")],
    text: "Sun.",
    reasoning: "First.\n\nThen."
  },
  "reasoning that is not shown": { items: [reasoning("rs_1", []), makeText("msg_1", "Sun.")], text: "Sun." },
  "reasoning that is not sealed": {
    items: [reasoning("rs_1", ["Hm."], null), makeText("msg_1", "Sun.")],
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
  "text and a call": { items: [makeText("msg_1", "I look."), call("call_1", "Paris")], text: "I look.", calls: 1 },
  "a call without arguments": { items: [functionCall("call_1", "list_cities", "{}")], calls: 1 },
  "a call of a set of tools": { items: [functionCall("call_1", "get_weather", "{}", { namespace: "crm" })], calls: 1 },
  "a call that a program made": {
    items: [item({ ...functionCall("call_1", "get_weather", "{}"), caller: { type: "program", caller_id: "prog_1" } })],
    calls: 1
  },
  "commentary and an answer": {
    items: [makeText("msg_1", "I put it together.", "commentary"), makeText("msg_2", "It is sunny.", "final_answer")],
    text: "I put it together.\n\nIt is sunny."
  },
  "reasoning, commentary and a call": {
    items: [reasoning("rs_1", ["Hm."]), makeText("msg_1", "I look.", "commentary"), call("call_1", "Paris")],
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
      makeText("msg_1", "Sun.")
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
      makeText("msg_1", "2")
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
      makeText("msg_1", "4")
    ],
    text: "4"
  },
  "a refusal": {
    items: [message("", { id: "msg_1", content: [{ type: "refusal", refusal: "I can't." }] })],
    text: "I can't.",
    stop: "refusal"
  },
  "a cut text": {
    items: [makeText("msg_1", "It is")],
    text: "It is",
    stop: "length",
    over: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
  },
  "a filtered text": {
    items: [makeText("msg_1", "It")],
    text: "It",
    stop: "contentFilter",
    over: { status: "incomplete", incomplete_details: { reason: "content_filter" } }
  }
}

type Events = ReadonlyArray<ResponseStreamEvent>

const isStructure = ({ type }: ResponseStreamEvent): boolean =>
  type === "response.created" || type === "response.completed" || type === "response.incomplete"

/** The ways in which servers stream one and the same response. */
export const streams: Readonly<Record<string, (events: Events) => Events>> = {
  "as documented": (events) => events,
  "in the end only": (events) => events.filter(isStructure),
  "with gaps between places": (events) =>
    events.map((event) => ("output_index" in event ? { ...event, output_index: event.output_index * 2 } : event)),
  "without deltas": (events) => events.filter(({ type }) => !type.endsWith(".delta"))
}
