import { describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Redacted } from "effect"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
import * as AiSdkChatModel from "effect-deepagents/models/bridges/AiSdkChatModel"
import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
import * as LanguageModelFromChatModel from "effect-deepagents/models/bridges/LanguageModelFromChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import { ChatModelConformance } from "effect-deepagents/testing/conformance"
import { toTurn } from "../testing/scenarios.ts"
import * as AiSdk from "./ai-sdk/models.ts"
import { claude } from "./anthropic/asking.ts"
import { compatible, responses } from "./openai/asking.ts"
import { chunk, functionCall, message, responseEvents, usageChunk } from "./openai/wire.ts"
import * as Anthropic from "./servers/anthropic.ts"
import * as Bedrock from "./servers/bedrock.ts"
import * as OpenAi from "./servers/openai.ts"

type Scenario = ChatModelConformance.Scenario
type Scenarios = ReadonlyArray<Scenario>

/** Places to cut a body at, so that no chunk ends at the end of an event, a JSON string or a character. */
const everywhere = (length: number): ReadonlyArray<number> =>
  Array.from({ length: Math.min(60, length) }, (_, index) => (index * 7919 + 13) % length)

const types: { readonly [status: number]: string } = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
  529: "overloaded_error"
}

const headersOf = (scenario: Extract<Scenario, { readonly _tag: "Status" }>): Record<string, string> =>
  scenario.retryAfter === undefined ? {} : { "retry-after": String(scenario.retryAfter) }

const failed = (scenario: Extract<Scenario, { readonly _tag: "Status" }>): OpenAi.Reply =>
  OpenAi.plain(scenario.status, { error: { message: "no", type: "error", code: null } }, headersOf(scenario))

const argumentsOf = (value: object): string => JSON.stringify(value)

const asResponses = (scenario: Scenario): OpenAi.Reply => {
  const cuts = everywhere(100_000)
  switch (scenario._tag) {
    case "Text":
      return OpenAi.events(responseEvents([message(scenario.pieces.join(""))]), { cuts })
    case "ToolCalls":
      return OpenAi.events(
        responseEvents(
          scenario.calls.map((call, index) => functionCall(`call_${index}`, call.name, argumentsOf(call.arguments))),
          {},
          1000
        ),
        { cuts }
      )
    case "LengthInArguments":
      return OpenAi.events(
        responseEvents([functionCall("call_0", scenario.name, scenario.partial, { status: "incomplete" })], {
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" }
        })
      )
    case "Empty":
      return OpenAi.events(responseEvents([]))
    case "Cut":
      return OpenAi.events(responseEvents([message(scenario.text)]).slice(0, -3), { ending: "reset" })
    case "Hang":
      return OpenAi.events(responseEvents([message(scenario.text)]).slice(0, -3), { ending: "hang" })
    case "Status":
      return failed(scenario)
  }
}

const asChunks = (scenario: Scenario): OpenAi.Reply => {
  const cuts = everywhere(100_000)
  const call = (index: number, name: string, args: string) =>
    chunk({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name, arguments: args } }] })
  switch (scenario._tag) {
    case "Text":
      return OpenAi.chunks([...scenario.pieces.map((content) => chunk({ content })), chunk({}, "stop"), usageChunk()], {
        cuts
      })
    case "ToolCalls":
      return OpenAi.chunks(
        [
          ...scenario.calls.map((one, index) => call(index, one.name, argumentsOf(one.arguments))),
          chunk({}, "tool_calls"),
          usageChunk()
        ],
        { cuts }
      )
    case "LengthInArguments":
      return OpenAi.chunks([call(0, scenario.name, scenario.partial), chunk({}, "length")])
    case "Empty":
      return OpenAi.chunks([chunk({}, "stop")])
    case "Cut":
      return OpenAi.chunks([chunk({ content: scenario.text })], { ending: "reset", done: false })
    case "Hang":
      return OpenAi.chunks([chunk({ content: scenario.text })], { ending: "hang", done: false })
    case "Status":
      return failed(scenario)
  }
}

const asMessages = (scenario: Scenario): Anthropic.Reply => {
  const options = { cuts: everywhere }
  switch (scenario._tag) {
    case "Text":
      return Anthropic.stream(Anthropic.answer([{ text: scenario.pieces.join("") }]), options)
    case "ToolCalls":
      return Anthropic.stream(
        Anthropic.answer(
          scenario.calls.map((call, index) => ({ call: call.name, id: `toolu_${index}`, input: call.arguments }))
        ),
        options
      )
    case "LengthInArguments":
      return Anthropic.stream(
        Anthropic.answer([{ call: scenario.name, id: "toolu_0", input: scenario.partial }], { stop: "max_tokens" })
      )
    case "Empty":
      return Anthropic.stream(Anthropic.answer([]))
    case "Cut":
      return Anthropic.stream(Anthropic.answer([{ text: scenario.text }]).slice(0, -2), { end: "reset", pause: 5 })
    case "Hang":
      return Anthropic.stream(Anthropic.answer([{ text: scenario.text }]).slice(0, -3), { end: "hold" })
    case "Status":
      return Anthropic.error(scenario.status, types[scenario.status] ?? "api_error", "no", {
        headers: headersOf(scenario)
      })
  }
}

let openAiSeen: ReadonlyArray<OpenAi.Seen> = []
let anthropicSeen: ReadonlyArray<Anthropic.Recorded> = []

const openAi =
  (
    toReply: (scenario: Scenario) => OpenAi.Reply,
    toLayer: (server: OpenAi.Server) => ReturnType<typeof responses | typeof compatible>
  ) =>
  (scenarios: Scenarios) =>
    Layer.unwrap(
      Effect.map(OpenAi.make, (server) => {
        server.reply(...scenarios.map(toReply))
        openAiSeen = server.seen
        return toLayer(server)
      })
    )

const anthropic = (toLayer: (server: Anthropic.Server) => ReturnType<typeof claude>) => (scenarios: Scenarios) =>
  Layer.unwrap(
    Effect.map(Anthropic.serve(...scenarios.map(asMessages)), (server) => {
      anthropicSeen = server.requests
      return toLayer(server)
    })
  )

const asGemini = (scenario: Scenario): OpenAi.Reply => {
  const cuts = everywhere(100_000)
  switch (scenario._tag) {
    case "Text":
      return OpenAi.raw(AiSdk.gemini(scenario.pieces.map((text) => ({ text }))), { cuts })
    case "ToolCalls":
      return OpenAi.raw(
        AiSdk.gemini(scenario.calls.map(({ arguments: args, name }) => ({ functionCall: { name, args } }))),
        { cuts }
      )
    // Gemini sends calls whole.
    case "LengthInArguments":
      return OpenAi.raw(AiSdk.gemini([], "MAX_TOKENS"))
    case "Empty":
      return OpenAi.raw(AiSdk.gemini([]))
    case "Cut":
      return OpenAi.raw(AiSdk.gemini([{ text: scenario.text }], null), { ending: "reset" })
    case "Hang":
      return OpenAi.raw(AiSdk.gemini([{ text: scenario.text }], null), { ending: "hang" })
    case "Status":
      return OpenAi.plain(
        scenario.status,
        { error: { code: scenario.status, message: "no", status: "UNKNOWN" } },
        headersOf(scenario)
      )
  }
}

const line = (message: object, more: object = {}): string =>
  `${JSON.stringify({ model: "served", message: { role: "assistant", content: "", ...message }, done: false, ...more })}\n`

const asLines = (scenario: Scenario): OpenAi.Reply => {
  const options = { cuts: everywhere(100_000), headers: { "content-type": "application/x-ndjson" } }
  const end = (done_reason: string): string =>
    line({}, { done: true, done_reason, prompt_eval_count: 3, eval_count: 2 })
  switch (scenario._tag) {
    case "Text":
      return OpenAi.raw(scenario.pieces.map((content) => line({ content })).join("") + end("stop"), options)
    case "ToolCalls":
      return OpenAi.raw(
        line({
          tool_calls: scenario.calls.map((one) => ({ function: { name: one.name, arguments: one.arguments } }))
        }) + end("stop"),
        options
      )
    // Ollama sends calls whole.
    case "LengthInArguments":
      return OpenAi.raw(end("length"), options)
    case "Empty":
      return OpenAi.raw(end("stop"), options)
    case "Cut":
      return OpenAi.raw(line({ content: scenario.text }), { ...options, ending: "reset" })
    case "Hang":
      return OpenAi.raw(line({ content: scenario.text }), { ...options, ending: "hang" })
    case "Status":
      return OpenAi.plain(scenario.status, { error: "no" }, headersOf(scenario))
  }
}

const ollama = ({ url }: OpenAi.Server) =>
  OllamaChatModel.layer({
    model: "served",
    baseURL: url,
    fetch: (input, init) =>
      typeof input === "string" && input.endsWith("/api/show")
        ? Promise.resolve(new Response("", { status: 404 }))
        : fetch(input, init)
  })

const openAiClosed = Effect.suspend(() => {
  const seen = openAiSeen.at(-1)
  return seen === undefined ? Effect.succeed(false) : Deferred.isDone(seen.closed)
})

const anthropicClosed = Effect.suspend(() => {
  const closed = anthropicSeen.at(-1)?.closed
  return closed === undefined
    ? Effect.succeed(false)
    : Effect.promise(() => Promise.race([closed.then(() => true), new Promise<false>((no) => setImmediate(no, false))]))
})

const awsTypes: { readonly [status: number]: string } = {
  400: "ValidationException",
  401: "UnrecognizedClientException",
  403: "AccessDeniedException",
  429: "ThrottlingException",
  503: "ServiceUnavailableException"
}

const asFrames = (scenario: Scenario): Anthropic.Reply => {
  const options = { cuts: everywhere }
  switch (scenario._tag) {
    case "Text":
      return Bedrock.framed(Anthropic.answer([{ text: scenario.pieces.join("") }]), options)
    case "ToolCalls":
      return Bedrock.framed(
        Anthropic.answer(
          scenario.calls.map((call, index) => ({ call: call.name, id: `toolu_${index}`, input: call.arguments }))
        ),
        options
      )
    case "LengthInArguments":
      return Bedrock.framed(
        Anthropic.answer([{ call: scenario.name, id: "toolu_0", input: scenario.partial }], { stop: "max_tokens" })
      )
    case "Empty":
      return Bedrock.framed(Anthropic.answer([]))
    case "Cut":
      return Bedrock.framed(Anthropic.answer([{ text: scenario.text }]).slice(0, -2), { end: "reset" })
    case "Hang":
      return Bedrock.framed(Anthropic.answer([{ text: scenario.text }]).slice(0, -3), { end: "hold" })
    case "Status":
      return Bedrock.awsError(
        scenario.status,
        awsTypes[scenario.status] ?? "InternalServerException",
        "no",
        headersOf(scenario)
      )
  }
}

const bedrock = (scenarios: Scenarios) =>
  Layer.unwrap(
    Effect.map(Bedrock.serveBedrock(...scenarios.map(asFrames)), (server) => {
      anthropicSeen = server.requests
      return BedrockChatModel.layer({
        model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
        bearerToken: Redacted.make("canary"),
        baseURL: server.url
      })
    })
  )

/** Bedrock's Converse API, which Nova, Llama, Mistral and gpt-oss speak. */
const asConverse = (scenario: Scenario): Anthropic.Reply => {
  const call = (index: number, name: string, input: string): Bedrock.ConverseBlock => ({
    start: { toolUse: { toolUseId: `tooluse_${index}`, name } },
    deltas: [{ toolUse: { input } }]
  })
  const toDeltas = (pieces: ReadonlyArray<string>) => [{ deltas: pieces.map((text) => ({ text })) }]
  const options = { cuts: everywhere }
  switch (scenario._tag) {
    case "Text":
      return Bedrock.frames(Bedrock.converseAnswer(toDeltas(scenario.pieces), "end_turn"), options)
    case "ToolCalls":
      return Bedrock.frames(
        Bedrock.converseAnswer(
          scenario.calls.map((one, index) => call(index, one.name, argumentsOf(one.arguments))),
          "tool_use"
        ),
        options
      )
    case "LengthInArguments":
      // The block that is cut has no end.
      return Bedrock.frames(
        Bedrock.converseAnswer([call(0, scenario.name, scenario.partial)], "max_tokens").toSpliced(3, 1)
      )
    case "Empty":
      return Bedrock.frames(Bedrock.converseAnswer([], "end_turn"))
    case "Cut":
      return Bedrock.frames(Bedrock.converseAnswer(toDeltas([scenario.text]), "").slice(0, 2), { end: "reset" })
    case "Hang":
      return Bedrock.frames(Bedrock.converseAnswer(toDeltas([scenario.text]), "").slice(0, 2), { end: "hold" })
    case "Status":
      return Bedrock.awsError(
        scenario.status,
        awsTypes[scenario.status] ?? "InternalServerException",
        "no",
        headersOf(scenario)
      )
  }
}

const converse =
  (toLayer: (server: Anthropic.Server) => ReturnType<typeof AiSdkChatModel.layer>) => (scenarios: Scenarios) =>
    Layer.unwrap(
      Effect.map(Anthropic.serveBy(() => [])(...scenarios.map(asConverse)), (server) => {
        anthropicSeen = server.requests
        return toLayer(server)
      })
    )

/** Both bridges, one on the other: a scripted model's words go through `effect/ai` and come back. */
const bridged = (scenarios: Scenarios) =>
  EffectAiChatModel.layer().pipe(
    Layer.provide(LanguageModelFromChatModel.layer),
    Layer.provide(TestChatModel.script(scenarios.map(toTurn), { exhaustive: false }))
  )

const subjects = {
  "Claude on Bedrock": { layer: bedrock, closed: anthropicClosed },
  "effect/ai": { layer: bridged },
  "AI SDK (V4)": { layer: (scenarios) => AiSdkChatModel.layer(AiSdk.mock(scenarios.map(AiSdk.toAnswer))) },
  "AI SDK (V3)": { layer: (scenarios) => AiSdkChatModel.layer(AiSdk.mockV3(scenarios.map(AiSdk.toAnswer))) },
  "AI SDK: @ai-sdk/openai": {
    layer: openAi(asResponses, ({ url }) => AiSdkChatModel.layer(AiSdk.openai(url))),
    closed: openAiClosed
  },
  "AI SDK: @ai-sdk/openai-compatible": {
    layer: openAi(asChunks, ({ url }) => AiSdkChatModel.layer(AiSdk.compatible(url))),
    closed: openAiClosed
  },
  "AI SDK: @ai-sdk/google": {
    layer: openAi(asGemini, ({ url }) => AiSdkChatModel.layer(AiSdk.google(url))),
    closed: openAiClosed
  },
  "AI SDK: @ai-sdk/amazon-bedrock (Converse)": {
    layer: converse(({ url }) => AiSdkChatModel.layer(AiSdk.bedrock(url))),
    closed: anthropicClosed
  },
  "Bedrock Converse": {
    layer: converse(({ url }) =>
      BedrockConverseChatModel.layer({
        model: "us.amazon.nova-pro-v1:0",
        region: "us-east-1",
        bearerToken: Redacted.make("canary"),
        baseURL: url
      })
    ),
    closed: anthropicClosed
  },
  Gemini: {
    layer: openAi(asGemini, ({ url }) =>
      GeminiChatModel.layer({ model: "gemini-3.5-flash", baseURL: url, apiKey: Redacted.make("canary") })
    ),
    closed: openAiClosed
  },
  "AI SDK: @ai-sdk/anthropic": {
    layer: anthropic(({ url }) => AiSdkChatModel.layer(AiSdk.anthropic(url))),
    closed: anthropicClosed
  },
  Ollama: { layer: openAi(asLines, ollama), closed: openAiClosed },
  "OpenAI Responses": { layer: openAi(asResponses, responses), closed: openAiClosed },
  "OpenAI-compatible Chat Completions": { layer: openAi(asChunks, compatible), closed: openAiClosed },
  "Anthropic Messages": { layer: anthropic(claude), closed: anthropicClosed }
} satisfies Record<string, ChatModelConformance.Subject<unknown, never>>

for (const [name, subject] of Object.entries(subjects)) {
  describe(name, () => {
    for (const check of ChatModelConformance.suite(subject)) it.live(check.name, () => check.run)
  })
}
