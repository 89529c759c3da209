/** Messages of OpenAI's APIs, in their own words: typed by the SDK. */
import type { ChatCompletionChunk } from "openai/resources/chat/completions"
import type {
  Response,
  ResponseOutputItem,
  ResponseStreamEvent,
  ResponseUsage
} from "openai/resources/responses/responses"

const usage: ResponseUsage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
  output_tokens: 50,
  output_tokens_details: { reasoning_tokens: 20 },
  total_tokens: 150
}

export const response = (over: Partial<Response>): Response => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  access_programs: null,
  output_text: "",
  status: "completed",
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: null,
  model: "gpt-5-2025-08-07",
  output: [],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  usage,
  ...over
})

const splitText = (text: string, size: number): ReadonlyArray<string> => {
  const points = Array.from(text)
  const parts: Array<string> = []
  for (let at = 0; at < points.length; at += size) parts.push(points.slice(at, at + size).join(""))
  return parts
}

type Draft = {
  [Type in ResponseStreamEvent["type"]]: Omit<Extract<ResponseStreamEvent, { type: Type }>, "sequence_number">
}[ResponseStreamEvent["type"]]

const itemEvents = (item: ResponseOutputItem, output_index: number, size: number): ReadonlyArray<Draft> => {
  const place = { item_id: "id" in item ? (item.id ?? "") : "", output_index }
  const done: Draft = { type: "response.output_item.done", output_index, item }
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check
  switch (item.type) {
    case "message": {
      const added: Draft = {
        type: "response.output_item.added",
        output_index,
        item: { ...item, content: [], status: "in_progress" }
      }
      const parts = item.content.flatMap((part, content_index): ReadonlyArray<Draft> =>
        part.type === "output_text"
          ? [
              { type: "response.content_part.added", ...place, content_index, part: { ...part, text: "" } },
              ...splitText(part.text, size).map((delta): Draft => ({
                type: "response.output_text.delta",
                ...place,
                content_index,
                delta,
                logprobs: []
              })),
              { type: "response.output_text.done", ...place, content_index, text: part.text, logprobs: [] },
              { type: "response.content_part.done", ...place, content_index, part }
            ]
          : [
              ...splitText(part.refusal, size).map((delta): Draft => ({
                type: "response.refusal.delta",
                ...place,
                content_index,
                delta
              })),
              { type: "response.refusal.done", ...place, content_index, refusal: part.refusal }
            ]
      )
      return [added, ...parts, done]
    }
    case "reasoning": {
      const added: Draft = {
        type: "response.output_item.added",
        output_index,
        item: { id: item.id, type: "reasoning", summary: [] }
      }
      const parts = item.summary.flatMap((part, summary_index): ReadonlyArray<Draft> => [
        { type: "response.reasoning_summary_part.added", ...place, summary_index, part: { ...part, text: "" } },
        ...splitText(part.text, size).map((delta): Draft => ({
          type: "response.reasoning_summary_text.delta",
          ...place,
          summary_index,
          delta
        })),
        { type: "response.reasoning_summary_text.done", ...place, summary_index, text: part.text },
        { type: "response.reasoning_summary_part.done", ...place, summary_index, part }
      ])
      return [added, ...parts, done]
    }
    case "function_call": {
      // The published schema asks for the name, the SDK's type has none.
      const type = "response.function_call_arguments.done" as const
      const argumentsDone = { type, ...place, arguments: item.arguments, name: item.name }
      const added: Draft = {
        type: "response.output_item.added",
        output_index,
        item: { ...item, arguments: "", status: "in_progress" }
      }
      return [
        added,
        ...splitText(item.arguments, size).map((delta): Draft => ({
          type: "response.function_call_arguments.delta",
          ...place,
          delta
        })),
        argumentsDone,
        done
      ]
    }
    default:
      return [{ type: "response.output_item.added", output_index, item }, done]
  }
}

/** The events of a response with these items, as the API sends them. */
export const responseEvents = (
  output: ReadonlyArray<ResponseOutputItem>,
  over: Partial<Response> = {},
  size = 5
): ReadonlyArray<ResponseStreamEvent> => {
  const whole = response({ output: [...output], ...over })
  const begun = response({ ...over, status: "in_progress", output: [] })
  const last =
    whole.status === "incomplete"
      ? "response.incomplete"
      : whole.status === "failed"
        ? "response.failed"
        : "response.completed"
  const drafts: ReadonlyArray<Draft> = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.flatMap((item, index) => itemEvents(item, index, size)),
    { type: last, response: whole }
  ]
  return drafts.map((draft, sequence_number) => ({ ...draft, sequence_number }))
}

export const message = (
  text: string,
  over: Partial<Extract<ResponseOutputItem, { type: "message" }>> = {}
): ResponseOutputItem => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
  ...over
})

export const reasoning = (
  id: string,
  summary: ReadonlyArray<string>,
  encrypted_content: string | null = `sealed ${id}`
): ResponseOutputItem => ({
  type: "reasoning",
  id,
  summary: summary.map((text) => ({ type: "summary_text" as const, text })),
  encrypted_content
})

export const functionCall = (
  call_id: string,
  name: string,
  args: string,
  over: Partial<Extract<ResponseOutputItem, { type: "function_call" }>> = {}
): ResponseOutputItem => ({
  type: "function_call",
  id: `fc_${call_id}`,
  call_id,
  name,
  arguments: args,
  status: "completed",
  ...over
})

/** A chunk of a chat completion; servers' additions to the delta beyond the SDK's types are allowed. */
export const chunk = (
  delta: ChatCompletionChunk.Choice.Delta & Readonly<Record<string, unknown>>,
  finish_reason: ChatCompletionChunk.Choice["finish_reason"] = null,
  over: Partial<ChatCompletionChunk> = {}
): ChatCompletionChunk => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "served-model",
  choices: [{ index: 0, delta, finish_reason }],
  ...over
})

/** The last chunk of a stream with `include_usage`. */
export const usageChunk = (over: Readonly<Record<string, unknown>> = {}): ChatCompletionChunk => ({
  ...chunk({}),
  choices: [],
  usage: {
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
    completion_tokens_details: { reasoning_tokens: 20 },
    ...over
  }
})
