import { expect, it } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
import fc from "fast-check"
import { afterEach, describe, vi } from "vitest"
import { scaled } from "../../scale.ts"
import { askToEnd, failure, message, request, tool, turn } from "../anthropic/asking.ts"
import type { Server } from "../servers/anthropic.ts"
import {
  awsError,
  converseAnswer,
  type ConverseBlock,
  converseFrame,
  exceptionFrame,
  failures,
  frame,
  frames,
  serveConverse,
  signatureOf
} from "../servers/bedrock.ts"

afterEach(() => void vi.unstubAllEnvs())

const secret = "bedrock-canary-0123456789"

const models = {
  claude: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
  nova: "us.amazon.nova-pro-v1:0",
  "nova 2": "global.amazon.nova-2-lite-v1:0",
  llama: "us.meta.llama3-3-70b-instruct-v1:0",
  mistral: "mistral.mistral-large-2407-v1:0",
  "gpt-oss": "openai.gpt-oss-120b-1:0",
  deepseek: "us.deepseek.r1-v1:0",
  stranger: "acme.large-v1:0"
}

const converse = (server: Server, options?: Partial<BedrockConverseChatModel.Options>) =>
  BedrockConverseChatModel.layer({
    model: models.nova,
    region: "us-east-1",
    bearerToken: Redacted.make(secret),
    baseURL: server.url,
    ...options
  })

const text = (...pieces: ReadonlyArray<string>): ConverseBlock => ({ deltas: pieces.map((one) => ({ text: one })) })

const call = (id: string, input: string): ConverseBlock => ({
  start: { toolUse: { toolUseId: id, name: "search" } },
  deltas: [{ toolUse: { input: input.slice(0, 4) } }, { toolUse: { input: input.slice(4) } }]
})

const thought = (...deltas: ReadonlyArray<object>): ConverseBlock => ({
  deltas: deltas.map((reasoningContent) => ({ reasoningContent }))
})

const citation = {
  citation: {
    title: "Effect",
    sourceContent: [{ text: "It is a library." }],
    location: { web: { url: "https://effect.website", domain: "effect.website" } }
  }
}

const serverCall: ConverseBlock = {
  start: { toolUse: { toolUseId: "srv_1", name: "nova_grounding", type: "server_tool_use" } },
  deltas: [{ toolUse: { input: '{"query":"x"}' } }]
}

const serverResult: ConverseBlock = {
  start: { toolResult: { toolUseId: "srv_1", type: "nova_grounding_result", status: "success" } },
  deltas: [{ toolResult: [{ json: { found: 3 } }] }]
}

/** What models say, in the shapes of AWS's reference, with the stop reason of each. */
const shapes: { readonly [shape: string]: readonly [ReadonlyArray<ConverseBlock>, string] } = {
  text: [[text("Grüße ", "日本 🤔")], "end_turn"],
  "text, cut": [[text("It goes on and")], "max_tokens"],
  "a call": [[call("tooluse_a", '{"of":"é"}')], "tool_use"],
  "a call without arguments": [[{ start: { toolUse: { toolUseId: "t", name: "search" } }, deltas: [] }], "tool_use"],
  "a malformed call": [[call("tooluse_a", '{"of":')], "tool_use"],
  "text and calls": [[text("I look."), call("tooluse_a", "{}"), call("tooluse_b", '{"of":"b"}')], "tool_use"],
  "calls with one id": [[call("same", '{"of":"a"}'), call("same", '{"of":"b"}')], "tool_use"],
  "signed thoughts": [
    [thought({ text: "hm " }, { text: "🤔" }, { signature: "sig" }), call("tooluse_a", "{}")],
    "tool_use"
  ],
  "hidden thoughts": [[thought({ redactedContent: "c2VjcmV0" }), text("Yes."), call("tooluse_a", "{}")], "tool_use"],
  "thoughts without a signature": [[thought({ text: "hm" }), call("tooluse_a", "{}")], "tool_use"],
  "thoughts between calls": [
    [
      thought({ text: "a" }, { signature: "s1" }),
      call("tooluse_a", "{}"),
      thought({ text: "b" }, { signature: "s2" }),
      call("tooluse_b", '{"of":"b"}')
    ],
    "tool_use"
  ],
  "what AWS ran": [[serverCall, serverResult, { deltas: [{ text: "Found." }, citation] }], "end_turn"],
  "what AWS ran before a call": [[serverCall, serverResult, text("So."), call("tooluse_a", "{}")], "tool_use"],
  "a guardrail": [[text("I can't.")], "guardrail_intervened"],
  "a call that was not read": [[text("I call")], "malformed_tool_use"],
  nothing: [[], "end_turn"]
}

const asked = request({ tools: [tool("search")] })

const answersTo = (said: Message.AiMessage): ReadonlyArray<Message.Message> =>
  [...said.toolCalls, ...said.malformedToolCalls].map((one, index) =>
    Message.tool(`found ${index}`, { toolCallId: one.id, toolName: "search", isError: index > 0 })
  )

/** The second request: the answer in its history, results, and a further question. */
const second = (said: Message.AiMessage) =>
  request({ tools: [tool("search")], messages: [...asked.messages, said, ...answersTo(said), Message.human("And?")] })

const ok = frames(converseAnswer([text("ok")], "end_turn"))

describe.each(Object.entries(models))("%s", (_, model) => {
  it.live.each(Object.entries(shapes))("%s goes back by the rules, to it and to others", ([, [blocks, stop]]) =>
    Effect.gen(function* () {
      const server = yield* serveConverse(frames(converseAnswer(blocks, stop)), ok)
      const said = yield* askToEnd(converse(server, { model }), asked)
      for (const next of [model, models.llama, models.claude, models.mistral]) {
        const layer = converse(server, { model: next })
        expect(Message.text(yield* askToEnd(layer, second(said)))).toBe("ok")
        // The last round of a run offers no tools.
        const { messages } = second(said)
        expect(Message.text(yield* askToEnd(layer, request({ messages })))).toBe("ok")
      }
    })
  )
})

const bodyOf = (server: Server) => server.requests.at(-1)?.body

describe("an answer", () => {
  it.live("is read as it was said", () =>
    Effect.gen(function* () {
      const [blocks] = shapes["thoughts between calls"]!
      const usage = { inputTokens: 10, outputTokens: 5, cacheReadInputTokens: 100, cacheWriteInputTokens: 20 }
      const server = yield* serveConverse(frames(converseAnswer([...blocks, text("Grüße")], "tool_use", usage)), ok)
      const layer = converse(server, { model: models.claude })
      const parts = yield* turn(layer, asked)
      const said = message(parts)
      expect(parts.map(({ _tag }) => _tag).filter((tag) => tag !== "ToolCallDelta")).toEqual([
        "ReasoningDelta",
        "ToolCallStart",
        "ReasoningDelta",
        "ToolCallStart",
        "TextDelta",
        "TurnDone"
      ])
      expect(said).toMatchObject({
        stopReason: "toolCalls",
        toolCalls: [
          { id: "tooluse_a", name: "search", arguments: {} },
          { id: "tooluse_b", arguments: { of: "b" } }
        ],
        usage: { inputTokens: 130, outputTokens: 5, cacheReadTokens: 100, cacheWriteTokens: 20 }
      })
      yield* turn(layer, second(said))
      const { content } = bodyOf(server).messages[1]
      expect(content).toEqual([
        { reasoningContent: { reasoningText: { text: "a", signature: "s1" } } },
        { toolUse: { toolUseId: "tooluse_a", name: "search", input: {} } },
        { reasoningContent: { reasoningText: { text: "b", signature: "s2" } } },
        { toolUse: { toolUseId: "tooluse_b", name: "search", input: { of: "b" } } },
        { text: "Grüße" }
      ])
    })
  )

  it.live("split at every byte reads the same", () =>
    Effect.gen(function* () {
      const all = converseAnswer([thought({ text: "hm 🤔" }), text("é"), call("tooluse_a", '{"of":"日"}')], "tool_use")
      const random = fc.sample(fc.array(fc.nat(1_500), { maxLength: 30 }), { numRuns: scaled(10), seed: 3 })
      const every = (length: number) => Array.from({ length }, (_, index) => index)
      const server = yield* serveConverse(
        frames(all),
        frames(all, { cuts: every }),
        ...random.map((places) => frames(all, { cuts: () => places }))
      )
      const layer = converse(server)
      const first = yield* askToEnd(layer, asked)
      expect(first).toMatchObject({ toolCalls: [{ arguments: { of: "日" } }] })
      for (let count = 0; count <= random.length; count++) {
        expect({ ...(yield* askToEnd(layer, asked)), id: "" }).toEqual({ ...first, id: "" })
      }
    })
  )

  it.live("returns hidden thoughts, and AWS's own calls, unchanged", () =>
    Effect.gen(function* () {
      const hidden = [thought({ redactedContent: "c2VjcmV0" }), serverCall, serverResult, text("So."), call("a", "{}")]
      const server = yield* serveConverse(frames(converseAnswer(hidden, "tool_use")), ok)
      const layer = converse(server, { serverTools: [{ systemTool: { name: "nova_grounding" } }] })
      const said = yield* askToEnd(layer, asked)
      expect(said.toolCalls).toHaveLength(1)
      yield* turn(layer, second(said))
      expect(bodyOf(server).messages[1].content).toEqual([
        { reasoningContent: { redactedContent: "c2VjcmV0" } },
        {
          toolUse: { toolUseId: "srv_1", name: "nova_grounding", type: "server_tool_use", input: { query: "x" } }
        },
        {
          toolResult: {
            toolUseId: "srv_1",
            type: "nova_grounding_result",
            status: "success",
            content: [{ json: { found: 3 } }]
          }
        },
        { text: "So." },
        { toolUse: { toolUseId: "a", name: "search", input: {} } }
      ])
      expect(bodyOf(server).toolConfig.tools[0]).toEqual({ systemTool: { name: "nova_grounding" } })
    })
  )

  it.live("has its citations as data", () =>
    Effect.gen(function* () {
      const server = yield* serveConverse(frames(converseAnswer(shapes["what AWS ran"]![0], "end_turn")))
      const [block] = (yield* askToEnd(converse(server), asked)).content
      expect(block).toMatchObject({
        text: "Found.",
        citations: [{ source: { url: "https://effect.website", title: "Effect" }, quote: "It is a library." }]
      })
    })
  )

  it.live("keeps a text and a thought of one block apart", () =>
    Effect.gen(function* () {
      const deltas = [{ reasoningContent: { text: "hm" } }, { text: "So" }, { reasoningContent: { text: "oh" } }]
      const server = yield* serveConverse(frames(converseAnswer([{ deltas }], "end_turn")))
      const { content } = yield* askToEnd(converse(server), asked)
      expect(content.map((block) => [block.type, "text" in block ? block.text : ""])).toEqual([
        ["reasoning", "hm"],
        ["text", "So"],
        ["reasoning", "oh"]
      ])
    })
  )

  it.live("may end for a reason that is a name of every object", () =>
    Effect.gen(function* () {
      for (const reason of ["constructor", "toString", "__proto__"]) {
        const server = yield* serveConverse(frames(converseAnswer([{ deltas: [{ text: "hm" }] }], reason)))
        expect((yield* askToEnd(converse(server), asked)).stopReason).toBe("stop")
      }
    })
  )

  it.live("of a model that streams no calls is asked for whole, from then on", () =>
    Effect.gen(function* () {
      const refused = awsError(400, "ValidationException", "This model doesn't support tool use in streaming mode.")
      const whole = {
        output: {
          message: {
            role: "assistant",
            content: [
              { reasoningContent: { reasoningText: { text: "hm", signature: "s" } } },
              { text: "I look." },
              { toolUse: { toolUseId: "tooluse_a", name: "search", input: { of: "x" } } }
            ]
          }
        },
        stopReason: "tool_use",
        usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
        metrics: { latencyMs: 3 }
      }
      const reply = {
        status: 200,
        headers: { "content-type": "application/json" },
        chunks: [new TextEncoder().encode(JSON.stringify(whole))],
        end: "end",
        checked: true
      } as const
      const server = yield* serveConverse(refused, reply, reply, ok)
      const layer = converse(server, { model: models.llama })
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), layer)
      const turns = [
        yield* Stream.runCollect(session.nextTurn(asked)),
        yield* Stream.runCollect(session.nextTurn(asked))
      ]
      for (const said of turns.map(message)) {
        expect(said).toMatchObject({
          content: [{ type: "reasoning", text: "hm" }, { text: "I look." }],
          toolCalls: [{ id: "tooluse_a", arguments: { of: "x" } }],
          usage: { inputTokens: 10, outputTokens: 5 }
        })
      }
      expect(server.requests.map(({ url }) => url.split("/").at(-1))).toEqual([
        "converse-stream",
        "converse",
        "converse"
      ])
    })
  )
})

describe("a request", () => {
  const asks = (options: Partial<BedrockConverseChatModel.Options>, more: Parameters<typeof request>[0] = {}) =>
    Effect.gen(function* () {
      const server = yield* serveConverse(ok)
      yield* turn(converse(server, options), request(more))
      return server.requests[0]!
    })

  it.live("carries images, documents and files in S3, and texts as text", () =>
    Effect.gen(function* () {
      const { body } = yield* asks(
        {},
        {
          messages: [
            Message.human([
              Content.image({ base64: "iVBORw==", mimeType: "image/png" }),
              Content.image({ url: "s3://bucket/cat.jpg" }),
              Content.image({ url: "https://example.com/a.png" }),
              Content.file({ base64: "JVBERi0=", mimeType: "application/pdf", name: "Q3: report_final.pdf" }),
              Content.file({ base64: "JVBERi0=", mimeType: "application/pdf", name: "Q3: report_final.pdf" }),
              Content.file({ base64: "YSxi", mimeType: "text/csv", name: "t.csv" })
            ])
          ]
        }
      )
      const content = body.messages[0].content
      expect(content).toMatchObject([
        { image: { format: "png", source: { bytes: "iVBORw==" } } },
        { image: { format: "jpeg", source: { s3Location: { uri: "s3://bucket/cat.jpg" } } } },
        { text: expect.stringContaining("An image was here") },
        { document: { format: "pdf", name: "Q3 report final pdf (1)" } },
        { document: { format: "pdf", name: "Q3 report final pdf (2)" } },
        { text: expect.stringContaining("a,b") }
      ])
    })
  )

  it.live("has cache points for models that take them", () =>
    Effect.gen(function* () {
      const tools = [tool("search")]
      const points = (body: object) => JSON.stringify(body).split('"cachePoint"').length - 1
      const history = [Message.human("a"), Message.ai("b", { model: "x" }), Message.human("c")]
      const more = { tools, messages: history }
      expect(points((yield* asks({ model: models.claude }, more)).body)).toBe(4)
      expect(points((yield* asks({ model: models.nova }, more)).body)).toBe(3)
      expect(points((yield* asks({ model: models.llama }, more)).body)).toBe(0)
      expect(points((yield* asks({ model: models.claude, cache: "off" }, more)).body)).toBe(0)
      const hour = yield* asks({ model: models.claude, cache: { ttl: "1h" } }, more)
      expect(hour.body.system.at(-1)).toEqual({ cachePoint: { type: "default", ttl: "1h" } })
    })
  )

  it.live.each([
    [models.claude, "low", { thinking: { type: "enabled", budget_tokens: 2_048 } }],
    [models.claude, "off", { thinking: { type: "disabled" } }],
    ["global.anthropic.claude-opus-5-5", "high", { thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
    [models["nova 2"], "medium", { reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" } }],
    [models["nova 2"], "off", { reasoningConfig: { type: "disabled" } }],
    [models["gpt-oss"], "off", { reasoning_effort: "low" }],
    [models.llama, "high", undefined]
  ] as const)("%s thinks %s in its own words", ([model, thinking, fields]) =>
    Effect.gen(function* () {
      expect((yield* asks({ model, thinking })).body.additionalModelRequestFields).toEqual(fields)
    })
  )

  it.live("sorts parameters: fields of the API, and fields of the model", () =>
    Effect.gen(function* () {
      const { body } = yield* asks(
        { temperature: 0.1, maxOutputTokens: 50, parameters: { top_k: 20, requestMetadata: { team: "a" } } },
        { parameters: { temperature: 0.5, guardrailConfig: { guardrailIdentifier: "g", guardrailVersion: "1" } } }
      )
      expect(body).toMatchObject({
        inferenceConfig: { temperature: 0.5, maxTokens: 50 },
        additionalModelRequestFields: { top_k: 20 },
        requestMetadata: { team: "a" },
        guardrailConfig: { guardrailIdentifier: "g" }
      })
      const server = yield* serveConverse(ok)
      const refused = yield* failure(converse(server, { parameters: { messages: [] } }))
      expect(refused.reason._tag).toBe("InvalidRequest")
    })
  )

  it.live("forces a call if the model can be forced, and asks for it otherwise", () =>
    Effect.gen(function* () {
      const more = { tools: [tool("search")], toolChoice: { tool: "search" } } as const
      expect((yield* asks({ model: models.mistral }, more)).body.toolConfig.toolChoice).toEqual({
        tool: { name: "search" }
      })
      const { body } = yield* asks({ model: models.llama }, more)
      expect(body.toolConfig.toolChoice).toBeUndefined()
      expect(body.messages.at(-1).content.at(-1).text).toContain("Call the tool search now.")
    })
  )

  it.live("holds an answer to a schema by the API's own means, if it is told to", () =>
    Effect.gen(function* () {
      const outputSchema = { type: "object", properties: { a: { type: "string" } } }
      const { body } = yield* asks({ structuredOutput: "native" }, { outputSchema })
      const { jsonSchema } = body.outputConfig.textFormat.structure
      expect(JSON.parse(jsonSchema.schema)).toEqual(outputSchema)
    })
  )

  it.live("is signed with credentials, its own headers too", () =>
    Effect.gen(function* () {
      const sent = yield* asks({
        bearerToken: undefined,
        credentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: Redacted.make(secret) },
        region: "eu-west-1",
        headers: { "x-team": "a" }
      })
      const { authorization = "" } = sent.headers
      const [, names = "", given] = /SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)/.exec(authorization) ?? []
      expect(names.split(";")).toEqual(expect.arrayContaining(["host", "x-amz-date", "x-team"]))
      const expected = signatureOf({
        method: sent.method,
        url: sent.url,
        headers: Object.fromEntries(Object.entries(sent.headers).map(([name, value]) => [name, String(value)])),
        signedHeaders: names.split(";"),
        body: sent.raw,
        date: String(sent.headers["x-amz-date"]),
        region: "eu-west-1",
        service: "bedrock",
        secret
      })
      expect(given).toBe(expected)
      expect((yield* asks({})).headers.authorization).toBe(`Bearer ${secret}`)
    })
  )
})

describe("a failure", () => {
  it.live.each(failures)("%d %s: %s", ([status, type, words, reason]) =>
    Effect.gen(function* () {
      const server = yield* serveConverse(awsError(status, type, `${words} ${secret}`, { "retry-after": "3" }))
      const failed = yield* failure(converse(server))
      expect([failed.reason._tag, failed.status, failed.requestId, failed.provider]).toEqual([
        reason,
        status,
        "aws-json",
        "bedrock"
      ])
      expect(failed.detail).toContain(words)
      expect(JSON.stringify(failed)).not.toContain(secret)
      expect(server.requests).toHaveLength(1)
    })
  )

  it.live.each([
    ["throttlingException", "RateLimited"],
    ["internalServerException", "Overloaded"],
    ["modelStreamErrorException", "Overloaded"],
    ["serviceUnavailableException", "Overloaded"],
    ["validationException", "InvalidRequest"]
  ])("inside of a stream: %s is %s", ([type = "", reason]) =>
    Effect.gen(function* () {
      const some = converseAnswer([text("partial")], "end_turn").slice(0, 2)
      const server = yield* serveConverse(frames([...some, exceptionFrame(type, "sorry")]))
      const failed = yield* failure(converse(server))
      expect([failed.reason._tag, failed.detail, failed.requestId]).toEqual([reason, "sorry", "aws-stream"])
    })
  )

  it.live("of the wire is told: a broken checksum, a page, a cut, an error frame, a redirect", () =>
    Effect.gen(function* () {
      const all = converseAnswer([text("partial")], "end_turn")
      const broken = Buffer.concat(all)
      broken[9] = broken[9]! ^ 1
      const page = { ...awsError(502, "", "no"), chunks: [new TextEncoder().encode("<html>Bad gateway</html>")] }
      const server = yield* serveConverse(
        frames([broken]),
        page,
        frames(all.slice(0, 2)),
        frames([frame({ ":message-type": "error", ":error-code": "InternalFailure", ":error-message": "oops" }, "")]),
        awsError(302, "", "moved", { location: "https://elsewhere.example/x" }),
        frames([...all.slice(0, 1), converseFrame("novelty", { a: 1 }), ...all.slice(1)])
      )
      const layer = converse(server)
      const told: Array<string> = []
      for (let count = 0; count < 5; count++) {
        const failed = yield* failure(layer)
        told.push(`${failed.reason._tag} ${failed.detail}`)
      }
      expect(told).toEqual([
        expect.stringContaining("BadResponse"),
        expect.stringMatching(/^Overloaded .*web page/),
        expect.stringMatching(/^BadResponse .*before a stop reason/),
        expect.stringContaining("oops"),
        expect.stringMatching(/^InvalidRequest .*redirects to https:\/\/elsewhere\.example/)
      ])
      expect(Message.text(yield* askToEnd(layer))).toBe("partial")
    })
  )

  it.live("to find credentials says what to set", () =>
    Effect.gen(function* () {
      const server = yield* serveConverse(ok)
      for (const name of ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"]) vi.stubEnv(name, "/nowhere")
      vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true")
      const failed = yield* failure(converse(server, { bearerToken: undefined }))
      expect([failed.reason._tag, server.requests.length]).toEqual(["Authentication", 0])
      expect(failed.detail).toContain("AWS_PROFILE")
      const nowhere = yield* failure(converse(server, { region: undefined }))
      expect([nowhere.reason._tag, nowhere.detail]).toEqual(["InvalidRequest", expect.stringContaining("AWS_REGION")])
    })
  )
})

it.live("costs of Claude follow its length and its cache, unless prices are given", () =>
  Effect.gen(function* () {
    const model = "us.anthropic.claude-haiku-5-5-20261101-v1:0"
    const costOf = (usage: object, options: Partial<BedrockConverseChatModel.Options> = {}) =>
      Effect.gen(function* () {
        const server = yield* serveConverse(frames(converseAnswer([text("ok")], "end_turn", usage)))
        return (yield* askToEnd(converse(server, { model, ...options }), asked)).usage?.cost
      })
    const short = { inputTokens: 100_000, outputTokens: 10 }
    const long = { inputTokens: 150_000, outputTokens: 10 }
    const written = { inputTokens: 0, outputTokens: 0, cacheWriteInputTokens: 50_000 }
    expect(yield* costOf(short)).toBeCloseTo((100_000 * 0.1 + 10 * 0.5) * 1.1e-6, 9)
    expect(yield* costOf(long)).toBeCloseTo((150_000 * 0.5 + 10 * 2.5) * 1.1e-6, 9)
    expect(yield* costOf(written)).toBeCloseTo(50_000 * 0.1 * 1.25 * 1.1e-6, 9)
    expect(yield* costOf(written, { cache: { ttl: "1h" } })).toBeCloseTo(50_000 * 0.1 * 2 * 1.1e-6, 9)
    expect(yield* costOf(long, { prices: { input: 1, output: 1 } })).toBeCloseTo(0.15001, 9)
    expect(yield* costOf(long, { model: models.nova })).toBeCloseTo((150_000 * 0.8 + 10 * 3.2) * 1e-6, 9)
  })
)

it.live("is found by name, with its facts", () =>
  Effect.gen(function* () {
    const knownFacts = (model: string) =>
      Effect.provide(
        Effect.map(ChatModel.ChatModel, ({ contextWindowTokens, prices, supportsVision }) => [
          contextWindowTokens,
          supportsVision,
          prices?.input
        ]),
        ChatModels.resolve(`bedrock:${model}`)
      )
    expect(yield* knownFacts(models.nova)).toEqual([300_000, true, 0.8])
    expect(yield* knownFacts(models["gpt-oss"])).toEqual([128_000, false, 0.15])
    expect(yield* knownFacts(models.llama)).toEqual([128_000, false, 0.72])
    expect(yield* knownFacts(models.stranger)).toEqual([undefined, false, undefined])
  })
)
