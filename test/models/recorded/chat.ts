/** The answers of servers with Chat Completions, as a table: server × content × cuts. A server's own ways (the field of its reasoning, its ids, its arithmetic, its additions to calls) stand in its row; the answers are made from the table. */
import { isDeepStrictEqual } from "node:util"
import type { Json } from "effect-deepagents"

type Delta = Readonly<Record<string, unknown>>

/** A call as it is meant. */
export interface Meant {
  readonly name: string
  readonly arguments: Json.JsonObject
}

/** The meaning of an answer, from any server. */
export interface Meaning {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<Meant>
  readonly finish?: string
  readonly refusal?: string
}

/** The usage of an answer, in tokens. */
export interface Spent {
  readonly input: number
  readonly cached: number
  readonly said: number
  readonly thought: number
}

/** A message of the model's, as it was sent back. */
// oxlint-disable-next-line typescript/no-explicit-any
type Sent = any

/** The ways of a server when it answers. */
export interface Way {
  readonly name: string
  readonly key: string | undefined
  readonly model: string
  readonly other: string
  /** A piece of reasoning, as a delta. */
  readonly think: (text: string) => Delta
  readonly id: (index: number) => string | undefined
  /** Calls come whole, or their arguments in pieces. */
  readonly calls: "whole" | "pieces"
  /** The additions to a call. */
  readonly attach?: (index: number) => Delta
  /** Reports whether the model's thoughts are in the message that goes back to it. */
  readonly echo: (said: Sent, reasoning: string) => boolean
  /** The proof behind reasoning. */
  readonly seal?: () => Delta
  readonly finish?: Readonly<Record<string, string>>
  readonly usage: (spent: Spent) => Delta
  /** Where usage stands: in a chunk of its own, in the last one, in a corner. */
  readonly usageIn: "own" | "last" | "x_groq" | "choice"
}

const letters = "0123456789abcdefghijklmnopqrstuvwxyz"

const word = (seed: number, length: number): string =>
  Array.from({ length }, (_, at) => letters[(seed * 31 + at * 7 + 5) % letters.length]).join("")

const signature = `CpgB${word(3, 40)}==`

const openAi = ({ cached, input, said, thought }: Spent): Delta => ({
  prompt_tokens: input,
  completion_tokens: said + thought,
  total_tokens: input + said + thought,
  prompt_tokens_details: { cached_tokens: cached },
  completion_tokens_details: { reasoning_tokens: thought }
})

const field =
  (name: string) =>
  (text: string): Delta => ({ [name]: text })

const echoed =
  (name: string) =>
  (said: Sent, reasoning: string): boolean =>
    (said[name] ?? "") === reasoning

/** Thoughts in the text are of no use to the next turn. */
const sealed = (text: string) => ({
  type: "reasoning.text",
  text,
  signature: `Eq${word(7, 60)}`,
  format: "anthropic-claude-v1",
  index: 0
})

const dropped = (said: Sent): boolean => !JSON.stringify(said).includes("thought")

const callId =
  (prefix: string, length: number) =>
  (index: number): string =>
    `${prefix}${word(index + 1, length)}`

export const ways: ReadonlyArray<Way> = [
  {
    name: "gemini",
    key: "GEMINI_API_KEY",
    model: "gemini-3.1-pro-preview",
    other: "gemini-3.5-flash",
    think: (text) => ({ content: `<thought>${text}</thought>`, extra_content: { google: { thought: true } } }),
    echo: (said) =>
      (said.tool_calls ?? []).every(
        (call: Sent, index: number) =>
          call.extra_content?.google.thought_signature === (index === 0 ? signature : undefined)
      ),
    id: (index) => (index === 0 ? "function-call-1234567890" : ""),
    calls: "whole",
    attach: (index) => (index === 0 ? { extra_content: { google: { thought_signature: signature } } } : {}),
    // Thoughts are counted in the total alone.
    usage: ({ input, said, thought }) => ({
      prompt_tokens: input,
      completion_tokens: said,
      total_tokens: input + said + thought
    }),
    usageIn: "last"
  },
  {
    name: "xai",
    key: "XAI_API_KEY",
    model: "grok-4.3",
    other: "grok-build-0.1",
    think: field("reasoning_content"),
    echo: echoed("reasoning_content"),
    id: callId("call_", 8),
    calls: "whole",
    // Reasoning is counted beside the completion.
    usage: ({ cached, input, said, thought }) => ({
      prompt_tokens: input,
      completion_tokens: said,
      total_tokens: input + said + thought,
      prompt_tokens_details: { text_tokens: input, audio_tokens: 0, image_tokens: 0, cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: thought, audio_tokens: 0 },
      num_sources_used: 0,
      cost_in_usd_ticks: 37_756_000
    }),
    usageIn: "own"
  },
  {
    name: "mistral",
    key: "MISTRAL_API_KEY",
    model: "magistral-medium-latest",
    other: "mistral-large-latest",
    think: (text) => ({ content: [{ type: "thinking", thinking: [{ type: "text", text }] }] }),
    echo: ({ content }, reasoning) =>
      Array.isArray(content) ? content[0].thinking[0].text === reasoning : reasoning === "",
    id: (index) => word(index + 11, 9),
    calls: "whole",
    usage: ({ cached, input, said, thought }) => ({
      prompt_tokens: input,
      completion_tokens: said + thought,
      total_tokens: input + said + thought,
      num_cached_tokens: cached
    }),
    finish: { length: "model_length" },
    usageIn: "last"
  },
  {
    name: "deepseek",
    key: "DEEPSEEK_API_KEY",
    model: "deepseek-v4-pro",
    other: "deepseek-v4-flash",
    think: field("reasoning_content"),
    echo: echoed("reasoning_content"),
    id: callId("call_00_", 24),
    calls: "pieces",
    usage: ({ cached, input, said, thought }) => ({
      prompt_tokens: input,
      completion_tokens: said + thought,
      total_tokens: input + said + thought,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: thought },
      prompt_cache_hit_tokens: cached,
      prompt_cache_miss_tokens: input - cached
    }),
    usageIn: "last"
  },
  {
    name: "groq",
    key: "GROQ_API_KEY",
    model: "openai/gpt-oss-120b",
    other: "llama-3.3-70b-versatile",
    think: field("reasoning"),
    echo: echoed("reasoning"),
    id: callId("fc_", 36),
    calls: "whole",
    usage: (spent) => ({ ...openAi(spent), queue_time: 0.04, prompt_time: 0.002, total_time: 0.3 }),
    usageIn: "x_groq"
  },
  {
    name: "together",
    key: "TOGETHER_API_KEY",
    model: "zai-org/GLM-5.1",
    other: "openai/gpt-oss-20b",
    think: field("reasoning"),
    echo: echoed("reasoning"),
    id: callId("call_", 24),
    calls: "pieces",
    usage: ({ cached, input, said, thought }) => ({
      prompt_tokens: input,
      completion_tokens: said + thought,
      total_tokens: input + said + thought,
      cached_tokens: cached
    }),
    finish: { stop: "eos" },
    usageIn: "last"
  },
  {
    name: "fireworks",
    key: "FIREWORKS_API_KEY",
    model: "accounts/fireworks/models/glm-5p2",
    other: "accounts/fireworks/models/kimi-k2p6",
    think: field("reasoning_content"),
    echo: echoed("reasoning_content"),
    id: callId("call_", 22),
    calls: "pieces",
    usage: openAi,
    usageIn: "last"
  },
  {
    name: "cerebras",
    key: "CEREBRAS_API_KEY",
    model: "gpt-oss-120b",
    other: "zai-glm-4.7",
    think: field("reasoning"),
    echo: echoed("reasoning"),
    id: callId("", 9),
    calls: "whole",
    usage: openAi,
    usageIn: "own"
  },
  {
    name: "openrouter",
    key: "OPENROUTER_API_KEY",
    model: "anthropic/claude-sonnet-4.5",
    other: "google/gemini-3.5-flash",
    think: (text) => ({
      reasoning: text,
      reasoning_details: [{ type: "reasoning.text", text, format: "anthropic-claude-v1", index: 0 }]
    }),
    echo: ({ reasoning_details }, reasoning) =>
      reasoning === "" ? reasoning_details === undefined : isDeepStrictEqual(reasoning_details, [sealed(reasoning)]),
    seal: () => {
      const { text: _, ...seal } = sealed("")
      return { reasoning_details: [seal] }
    },
    id: callId("toolu_vrtx_01", 22),
    calls: "pieces",
    usage: (spent) => ({ ...openAi(spent), cost: 0.0125, is_byok: false }),
    usageIn: "own"
  },
  {
    name: "lm-studio",
    key: undefined,
    model: "qwen/qwen3-8b",
    other: "openai/gpt-oss-20b",
    think: (text) => ({ content: `<think>${text}</think>` }),
    echo: dropped,
    id: (index) => `${100_000_000 + index}`,
    calls: "pieces",
    usage: openAi,
    usageIn: "own"
  },
  {
    name: "llama-server",
    key: undefined,
    model: "gemma-4-e4b",
    other: "qwen3-4b",
    think: field("reasoning_content"),
    echo: echoed("reasoning_content"),
    id: (index) => word(index + 3, 32),
    calls: "pieces",
    usage: openAi,
    usageIn: "last"
  },
  {
    name: "vllm",
    key: undefined,
    model: "Qwen/Qwen3-32B",
    other: "deepseek-ai/DeepSeek-V4-Flash",
    think: field("reasoning"),
    echo: echoed("reasoning"),
    id: callId("chatcmpl-tool-", 32),
    calls: "pieces",
    usage: openAi,
    usageIn: "own"
  }
]

export const spent: Spent = { input: 120, cached: 64, said: 20, thought: 42 }

const get = (of: string): Meant => ({ name: "get_weather", arguments: { of } })

/** Contents by their names. */
export const meanings: Readonly<Record<string, Meaning>> = {
  text: { text: "It is sunny in Paris." },
  "text of many scripts": { text: "Grüße 👋🏽 你好 שלום\n\n```js\nx\n```" },
  "text that looks like a tag": { text: "Write <b>bold</b> and </think> yourself." },
  reasoning: { reasoning: "The user asks for the weather.", text: "It is sunny." },
  "long reasoning": { reasoning: "First this, then that. ".repeat(20).trim(), text: "Done." },
  call: { calls: [get("Paris")] },
  "call behind text": { text: "Let me look.", calls: [get("Paris")] },
  "call behind reasoning": { reasoning: "I need the weather.", calls: [get("Paris")] },
  "call behind both": { reasoning: "I need it.", text: "One moment.", calls: [get("Paris")] },
  "calls in parallel": { calls: [get("Paris"), get("Rome"), get("Oslo")] },
  "calls in parallel behind reasoning": { reasoning: "Both.", calls: [get("Paris"), get("Rome")] },
  "call without arguments": { calls: [{ name: "list_cities", arguments: {} }] },
  "call with nested arguments": {
    calls: [{ name: "get_weather", arguments: { of: 'a "quoted" \\ 👋', deep: { list: [1, null, { x: true }] } } }]
  },
  "cut text": { text: "It is", finish: "length" },
  "filtered text": { text: "It", finish: "content_filter" }
}

/** Ways to cut a text. */
export const cuts: Readonly<Record<string, number>> = { whole: Number.MAX_SAFE_INTEGER, pieces: 7 }

const cutText = (text: string, size: number): ReadonlyArray<string> => {
  const points = Array.from(text)
  const parts: Array<string> = []
  for (let at = 0; at < points.length; at += size) parts.push(points.slice(at, at + size).join(""))
  return parts
}

/** Tags stay in one piece with their content: the server writes them itself. */
const thoughts = (way: Way, text: string, size: number): ReadonlyArray<Delta> => {
  const isTagged = typeof way.think("")["content"] === "string"
  return (isTagged ? [text] : cutText(text, size)).map(way.think)
}

const callDeltas = (way: Way, call: Meant, index: number, size: number): ReadonlyArray<Delta> => {
  const raw = JSON.stringify(call.arguments)
  const begin = (args: string): Delta => ({
    tool_calls: [
      {
        index,
        id: way.id(index),
        type: "function",
        function: { name: call.name, arguments: args },
        ...way.attach?.(index)
      }
    ]
  })
  if (way.calls === "whole") return [begin(raw)]
  const pieces = cutText(raw, size).map((args): Delta => ({ tool_calls: [{ index, function: { arguments: args } }] }))
  return [begin(""), ...pieces]
}

/** The chunks of an answer. */
export const chunksOf = (way: Way, meaning: Meaning, size: number): ReadonlyArray<unknown> => {
  const { calls = [], reasoning = "", text = "" } = meaning
  const finish = meaning.finish ?? (calls.length > 0 ? "tool_calls" : "stop")
  const deltas = [
    ...(reasoning === "" ? [] : [...thoughts(way, reasoning, size), ...(way.seal === undefined ? [] : [way.seal()])]),
    ...cutText(text, size).map((content): Delta => ({ content })),
    ...calls.flatMap((call, index) => callDeltas(way, call, index, size))
  ]
  const usage = way.usage({ ...spent, thought: reasoning === "" ? 0 : spent.thought })
  const base = { id: "gen-1", object: "chat.completion.chunk", created: 1, model: way.model }
  const chunk = (delta: Delta, end: string | null = null, more: Delta = {}): unknown => ({
    ...base,
    choices: [{ index: 0, delta: { role: "assistant", ...delta }, finish_reason: end }],
    ...more
  })
  const end = way.finish?.[finish] ?? finish
  const last = way.usageIn === "last" ? { usage } : way.usageIn === "x_groq" ? { x_groq: { id: "req_1", usage } } : {}
  return [
    ...deltas.map((delta) => chunk(delta)),
    chunk({}, end, last),
    ...(way.usageIn === "own" ? [{ ...base, choices: [], usage }] : [])
  ]
}
