import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Message } from "effect-deepagents"
import { Logprobs } from "effect-deepagents/models"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import { askAll, compatible, request, responses } from "./openai/asking.ts"
import { chunk, message, responseEvents, usageChunk } from "./openai/wire.ts"
import * as Server from "./servers/openai.ts"

const tokens = [
  { token: "Yes", logprob: -0.1, bytes: [89], top_logprobs: [{ token: "Yes", logprob: -0.1, bytes: null }] },
  { token: "!", logprob: -2, bytes: null, top_logprobs: [] }
]

const wanted = [
  { token: "Yes", logprob: -0.1, top: [{ token: "Yes", logprob: -0.1 }] },
  { token: "!", logprob: -2, top: [] }
]

const [first, second] = tokens

const said = message("Yes!")
const spoken = { ...said, content: [{ type: "output_text", text: "Yes!", annotations: [], logprobs: tokens }] }

const sse = (event: object): Server.Reply => Server.raw(`data: ${JSON.stringify(event)}\n\n`)

const lines = [
  { message: { content: "Yes" }, logprobs: [first], done: false },
  { message: { content: "!" }, logprobs: [second], done: false },
  { message: { content: "" }, done: true, done_reason: "stop" }
]

const providers: {
  readonly [name: string]: readonly [
    (server: Server.Server) => Parameters<typeof askAll>[0],
    ...replies: ReadonlyArray<Server.Reply>
  ]
} = {
  "OpenAI Responses": [responses, Server.events(responseEvents([spoken as typeof said]))],
  "Chat Completions": [
    compatible,
    Server.chunks([
      ...tokens.map((one) => {
        const { choices, ...rest } = chunk({ content: one.token })
        return { ...rest, choices: [{ ...choices[0]!, logprobs: { content: [one], refusal: null } }] }
      }),
      chunk({}, "stop"),
      usageChunk()
    ])
  ],
  Gemini: [
    ({ url }) =>
      GeminiChatModel.layer({ model: "gemini-3.5-flash", baseURL: url, apiKey: Redacted.make("canary-key") }),
    sse({
      candidates: [
        {
          content: { parts: [{ text: "Yes!" }] },
          finishReason: "STOP",
          logprobsResult: {
            topCandidates: [{ candidates: [{ token: "Yes", tokenId: 1, logProbability: -0.1 }] }],
            chosenCandidates: [
              { token: "Yes", tokenId: 1, logProbability: -0.1 },
              { token: "!", tokenId: 2, logProbability: -2 }
            ]
          }
        }
      ],
      usageMetadata: {}
    })
  ],
  Ollama: [
    ({ url }) => OllamaChatModel.layer({ model: "qwen3:8b", baseURL: url }),
    Server.plain(404, ""),
    Server.raw(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  ]
}

describe("Logprobs.of", () => {
  for (const [name, [model, ...replies]] of Object.entries(providers)) {
    it.live(`reads the probabilities of ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(...replies)
        const [outcome] = yield* askAll(model(server), [request([Message.human("hi")])])
        assert.deepStrictEqual(outcome?.message === undefined ? [] : Logprobs.of(outcome.message), wanted)
      })
    )
  }

  it.effect("finds none where none were asked for", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(Logprobs.of(Message.human("hi")), [])
      assert.deepStrictEqual(
        Logprobs.of(Message.ai("hi", { model: "m", providerData: { openai: { logprobs: [1, {}] } } })),
        []
      )
    })
  )
})
