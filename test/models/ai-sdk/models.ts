/** Models of the AI SDK: its own mock, and its packages at servers of ours. */
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock"
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart, LanguageModelV4Usage } from "@ai-sdk/provider"
import { MockLanguageModelV3, MockLanguageModelV4 } from "ai/test"
import type { ChatModelConformance } from "effect-deepagents/testing/conformance"

export type Part = LanguageModelV4StreamPart

const key = "sk-canary-key-0123456789"

export const openai = (url: string, model = "gpt-5") => createOpenAI({ apiKey: key, baseURL: url }).responses(model)

export const compatible = (url: string) =>
  createOpenAICompatible({ name: "served", apiKey: key, baseURL: url, includeUsage: true })("served-model")

export const anthropic = (url: string) => createAnthropic({ apiKey: key, baseURL: `${url}/v1` })("claude-opus-5")

export const bedrock = (url: string) =>
  createAmazonBedrock({ region: "eu-central-1", apiKey: key, baseURL: url })("amazon.nova-pro-v1:0")

export const google = (url: string) => createGoogle({ apiKey: key, baseURL: url })("gemini-3.5-flash")

const usage: LanguageModelV4Usage = {
  inputTokens: { total: 100, noCache: 30, cacheRead: 60, cacheWrite: 10 },
  outputTokens: { total: 50, text: 30, reasoning: 20 }
}

export const finish = (
  unified: Extract<Part, { readonly type: "finish" }>["finishReason"]["unified"] = "stop",
  raw: string | undefined = unified
): Part => ({ type: "finish", usage, finishReason: { unified, raw } })

export const text = (...pieces: ReadonlyArray<string>): ReadonlyArray<Part> => [
  { type: "text-start", id: "0" },
  ...pieces.map((delta): Part => ({ type: "text-delta", id: "0", delta })),
  { type: "text-end", id: "0" }
]

export const call = (toolCallId: string, toolName: string, input: string): ReadonlyArray<Part> => [
  { type: "tool-input-start", id: toolCallId, toolName },
  { type: "tool-input-delta", id: toolCallId, delta: input },
  { type: "tool-input-end", id: toolCallId },
  { type: "tool-call", toolCallId, toolName, input }
]

/** A stream that gives these parts, and then ends, breaks or goes on for ever. */
const streamOf = <A>(parts: ReadonlyArray<A>, how: "end" | "hang" | { readonly error: unknown }) => {
  const left = [...parts]
  return new ReadableStream<A>({
    pull: (controller) => {
      const next = left.shift()
      if (next !== undefined) return controller.enqueue(next)
      if (how === "hang") return new Promise<void>(() => undefined)
      if (how === "end") return controller.close()
      return controller.error(how.error)
    }
  })
}

export type Answer =
  | ReadonlyArray<Part>
  | { readonly parts: ReadonlyArray<Part>; readonly how: Parameters<typeof streamOf>[1] }
  | { readonly error: unknown }

const isParts = (answer: Answer): answer is ReadonlyArray<Part> => Array.isArray(answer)

const next = (answers: Array<Answer>): { readonly stream: ReadableStream<Part> } => {
  const answer = answers.shift() ?? { error: new Error("the script is over") }
  if (isParts(answer)) return { stream: streamOf(answer, "end") }
  if ("error" in answer) throw answer.error
  return { stream: streamOf(answer.parts, answer.how) }
}

/** The AI SDK's mock, answering the n-th call with the n-th answer. */
export const mock = (answers: ReadonlyArray<Answer>, options: { readonly provider?: string } = {}) => {
  const left = [...answers]
  return new MockLanguageModelV4({
    provider: options.provider ?? "acme.chat",
    modelId: "model-1",
    supportedUrls: { "image/*": [/^https:\/\/cdn\./] },
    doStream: async () => next(left)
  })
}

/** The same for a model of the older specification. */
export const mockV3 = (answers: ReadonlyArray<Answer>) => {
  const left = [...answers]
  return new MockLanguageModelV3({
    provider: "acme.chat",
    modelId: "model-1",
    // The parts that are used here are the same in both.
    doStream: async () => next(left) as { readonly stream: ReadableStream<LanguageModelV3StreamPart> }
  })
}

const errorOf = (status: number, retryAfter: number | undefined) =>
  Object.assign(new Error("no"), {
    name: "AI_APICallError",
    statusCode: status,
    responseHeaders: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
    responseBody: JSON.stringify({ error: { message: "no" } })
  })

/** A scenario of the conformance suite. */
export const toAnswer = (scenario: ChatModelConformance.Scenario): Answer => {
  switch (scenario._tag) {
    case "Text":
      return [...text(...scenario.pieces), finish()]
    case "ToolCalls":
      return [
        ...scenario.calls.flatMap((one, index) => call(`call_${index}`, one.name, JSON.stringify(one.arguments))),
        finish("tool-calls")
      ]
    case "LengthInArguments":
      return [...call("call_0", scenario.name, scenario.partial).slice(0, 2), finish("length")]
    case "Empty":
      return [finish()]
    case "Cut":
      return { parts: text(scenario.text).slice(0, 2), how: { error: new TypeError("terminated") } }
    case "Hang":
      return { parts: text(scenario.text).slice(0, 2), how: "hang" }
    case "Status":
      return { error: errorOf(scenario.status, scenario.retryAfter) }
  }
}

/** The stream of Gemini's own API. */
export const gemini = (parts: ReadonlyArray<object>, finishReason: string | null = "STOP", more: object = {}): string =>
  [
    ...parts.map((part) => ({ candidates: [{ content: { role: "model", parts: [part] } }] })),
    ...(finishReason === null
      ? []
      : [
          {
            candidates: [{ content: { role: "model", parts: [] }, finishReason, ...more }],
            usageMetadata: {
              promptTokenCount: 100,
              cachedContentTokenCount: 60,
              candidatesTokenCount: 30,
              thoughtsTokenCount: 20,
              totalTokenCount: 150
            }
          }
        ])
  ]
    .map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`)
    .join("")
