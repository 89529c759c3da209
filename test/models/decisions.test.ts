import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Result, Schema } from "effect"
import { Message } from "effect-deepagents"
import * as DecisionModels from "effect-deepagents/models/DecisionModels"
import { TestChatModel } from "effect-deepagents/testing"
import { Decision, DecisionModel } from "effect/ai"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import * as Server from "./servers/openai.ts"

const key = "canary-key-0123456789"

const Ticket = Decision.make({
  input: Schema.Struct({ text: Schema.String }),
  decisions: {
    urgent: Decision.probability({ instructions: "It is urgent", criteria: { false: "it can wait", true: "now" } }),
    team: Decision.classify({ instructions: "The team", criteria: { billing: "payments", tech: "bugs", other: null } }),
    anger: Decision.rate({ instructions: "How angry", criteria: ["calm", { label: "cross", description: { is: 2 } }] })
  }
})

const ticket = { input: { text: "the harbour at night is closed" } }
const decide = DecisionModel.decide(Ticket, ticket)
const settle = Effect.map(DecisionModel.decideSettled(Ticket, ticket), ({ outcomes }) => outcomes)

const at = {
  openAi: ({ url }: Server.Server) =>
    DecisionModels.layerOpenAi({ model: "gpt-6-luna", baseURL: url, apiKey: Redacted.make(key) }),
  systemOne: ({ url }: Server.Server) =>
    DecisionModels.layerSystemOne({ model: "kev-4b", baseURL: `${url}/`, apiKey: Redacted.make(key) })
}

const openAiAnswers = [
  { type: "predicate", name: "q1", probability: 0.75 },
  {
    type: "choice",
    name: "q2",
    choice: "tech",
    confidence: 0.5,
    probabilities: [
      { value: "billing", probability: 0.1 },
      { value: "tech", probability: 0.7 },
      { value: "other", probability: 0.2 }
    ]
  },
  {
    type: "score",
    name: "q3",
    score: 0.9,
    confidence: 0.8,
    probabilities: [
      { label: "calm", value: 0, probability: 0.1 },
      { label: "cross", value: 1, probability: 0.9 }
    ]
  }
]

const systemOneAnswers = {
  q1: { type: "noul", noul: 0.75 },
  q2: { type: "choice", choice: "tech", confidence: 0.5, probabilities: { billing: 0.1, tech: 0.7, other: 0.2 } },
  q3: { type: "score", score: 0.9, confidence: 0.8, probabilities: { "0": 0.1, "1": 0.9 }, legend: { "0": "calm" } }
}

const usage = { input_tokens: 12, output_tokens: 0, total_tokens: 12 }
const openAi = (answers: unknown) => Server.plain(200, { model: "gpt-6-luna-1", usage, answers })
const systemOne = (answers: unknown) => Server.plain(200, { model: "kev-1", usage, answers })

const wanted = {
  urgent: { probability: 0.75 },
  team: { label: "tech", confidence: 0.5, probabilities: { billing: 0.1, tech: 0.7, other: 0.2 } },
  anger: { label: "cross", rating: 0.9, confidence: 0.8, probabilities: { calm: 0.1, cross: 0.9 } }
}

/** Answers have no prototype. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Distributions that are nearly right. */
const shares = fc.record(
  {
    billing: fc.constantFrom<unknown>(0, 0.2, 0.3, "0.2", null),
    tech: fc.constantFrom<unknown>(0.5, 0.8, 1, -1),
    other: fc.constantFrom<unknown>(0, 0.2, {})
  },
  { requiredKeys: ["tech"] }
)

describe("DecisionModels", () => {
  it.live("asks OpenAI's Decisions API", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(openAi(openAiAnswers))
      const response = yield* Effect.provide(decide, at.openAi(server))
      assert.deepStrictEqual(plain(response.answers), wanted)
      assert.deepStrictEqual([response.usage.inputTokens, response.modelId], [12, "gpt-6-luna-1"])
      const [seen] = server.seen
      assert.strictEqual(seen?.path, "/v1/decisions")
      assert.strictEqual(seen?.headers.authorization, `Bearer ${key}`)
      assert.deepStrictEqual(seen?.body, {
        model: "gpt-6-luna",
        input: [{ role: "user", content: [{ type: "input_json", data: ticket.input }] }],
        questions: [
          { type: "predicate", name: "q1", instructions: "It is urgent\nTrue: now\nFalse: it can wait" },
          {
            type: "choice",
            name: "q2",
            instructions: "The team",
            choices: [
              { value: "billing", description: "payments" },
              { value: "tech", description: "bugs" },
              { value: "other" }
            ]
          },
          {
            type: "score",
            name: "q3",
            instructions: "How angry",
            levels: [
              { label: "calm", description: "calm" },
              { label: "cross", description: '{"is":2}' }
            ]
          }
        ]
      })
    })
  )

  it.live("asks a System One server, whose levels are numbered", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(systemOne(systemOneAnswers))
      const response = yield* Effect.provide(decide, at.systemOne(server))
      assert.deepStrictEqual(plain(response.answers), wanted)
      const [seen] = server.seen
      assert.strictEqual(seen?.path, "/v1/systemone")
      assert.deepStrictEqual(seen?.body, {
        model: "kev-4b",
        state: ticket.input,
        questions: {
          q1: { type: "noul", instructions: "It is urgent", criteria: { false: "it can wait", true: "now" } },
          q2: {
            type: "choice",
            instructions: "The team",
            criteria: { billing: "payments", tech: "bugs", other: null }
          },
          q3: { type: "score", instructions: "How angry", criteria: ["calm", { is: 2 }] }
        }
      })
    })
  )

  it.live("sends images along to OpenAI's format, and refuses them for the others", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const photo = { mediaType: "image/png", data: "aGk=" }
      const Photo = Decision.make({
        input: Schema.Struct({ photo: Decision.Image }),
        decisions: { cat: Decision.probability({ instructions: "`photo` shows a cat" }) }
      })
      const look = DecisionModel.decide(Photo, { input: { photo } })
      server.reply(openAi([{ type: "predicate", name: null, probability: 1 }]))
      assert.strictEqual((yield* Effect.provide(look, at.openAi(server))).answers.cat.probability, 1)
      const [json, reference, image] = server.seen[0]?.body.input[0].content ?? []
      assert.strictEqual(`${json.data.photo}:`, reference.text)
      assert.deepStrictEqual(image, { type: "input_image", image_url: "data:image/png;base64,aGk=" })
      const refused = yield* Effect.flip(Effect.provide(look, at.systemOne(server)))
      assert.strictEqual(refused.reason._tag, "InvalidUserInputError")
      assert.lengthOf(server.seen, 1)
    })
  )

  it.live("reports each hostile answer, and keeps the sound ones", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const [predicate, choice, score] = openAiAnswers
      const distributions = [
        [{ value: "billing", probability: 1 }],
        [
          { value: "other", probability: 0.9 },
          { value: "billing", probability: 0.1 },
          { value: "tech", probability: 0.7 },
          { value: "other", probability: 0.2 }
        ],
        [
          { value: "billing", probability: 0.5 },
          { value: "tech", probability: 0.7 },
          { value: "other", probability: 0.2 }
        ],
        [
          { value: "billing", probability: -0.1 },
          { value: "tech", probability: 0.9 },
          { value: "other", probability: 0.2 }
        ],
        "none",
        undefined
      ]
      const cases: ReadonlyArray<readonly [unknown, string]> = [
        ...distributions.map((probabilities) => [{ ...choice, probabilities }, "team"] as const),
        [{ ...choice, choice: "sales" }, "team"],
        [{ ...choice, choice: true }, "team"],
        [{ ...choice, confidence: "high" }, "team"],
        [{ ...choice, type: "predicate" }, "team"],
        [{ type: "refusal", name: "q2" }, "team"],
        [null, "team"]
      ]
      for (const [answer, name] of cases) {
        server.reply(openAi([predicate, answer, score]))
        const outcomes = yield* Effect.provide(settle, at.openAi(server))
        const failed = Object.entries(outcomes).flatMap(([one, { _tag }]) => (_tag === "Failure" ? [one] : []))
        assert.deepStrictEqual(failed, [name], JSON.stringify(answer))
      }
      for (const noul of ["0.5", null, -1, 1.5, {}]) {
        server.reply(systemOne({ ...systemOneAnswers, q1: { type: "noul", noul } }))
        const { urgent } = yield* Effect.provide(settle, at.systemOne(server))
        assert.isTrue(Result.isFailure(urgent), JSON.stringify(noul))
      }
      // JSON has no NaN, but numbers that are infinite once they are read.
      server.reply(Server.plain(200, `{"answers":{"q1":{"type":"noul","noul":1e999}}}`))
      assert.isTrue(Result.isFailure((yield* Effect.provide(settle, at.systemOne(server))).urgent))
      // A second answer to a question counts as none.
      server.reply(openAi([...openAiAnswers, { ...predicate, probability: 1 }]))
      assert.isTrue(Result.isFailure((yield* Effect.provide(settle, at.openAi(server))).urgent))
    })
  )

  it("never gives an invalid answer, for any answer of a server", () =>
    fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue({ maxDepth: 4 }), shares), fc.boolean(), (value, isOpenAi) => {
        const one = { type: "choice", name: "q2", choice: "tech", probabilities: value }
        const bodies = [
          { usage: value, answers: value },
          { usage: value, answers: isOpenAi ? [value, one] : { q2: one, q3: value } }
        ]
        const make = isOpenAi ? DecisionModels.layerOpenAi : DecisionModels.layerSystemOne
        const check = Effect.forEach(
          bodies,
          (body) =>
            Effect.gen(function* () {
              const { team } = yield* settle
              if (Result.isFailure(team)) return
              const { label, probabilities } = team.success
              assert.include(["billing", "tech", "other"], label)
              assert.closeTo(
                Object.values(probabilities).reduce((left, right) => left + right, 0),
                1,
                1e-5
              )
            }).pipe(
              Effect.provide(
                make({
                  model: "m",
                  baseURL: "http://127.0.0.1:1/v1",
                  fetch: () => Promise.resolve(Response.json(body))
                })
              )
            ),
          { discard: true }
        )
        return Effect.runPromise(check)
      }),
      { numRuns: scaled(400) }
    ))

  it.live("tells failures by their kind, without the key and the input, and names the other format", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const said = `bad ${key}: the harbour at night is closed`
      const replies = [
        [Server.plain(401, { error: { message: said } }), "AuthenticationError"],
        [Server.plain(429, { error: { message: said } }, { "retry-after": "2" }), "RateLimitError"],
        [Server.plain(422, { detail: [{ loc: ["body", "state"], msg: said, type: "x" }] }), "InvalidRequestError"],
        [Server.plain(529, { error: { message: said } }), "InternalProviderError"],
        [Server.plain(200, "[]"), "InvalidOutputError"],
        [Server.reset, "NetworkError"]
      ] as const
      for (const layer of [at.openAi(server), at.systemOne(server)]) {
        for (const [reply, tag] of replies) {
          server.reply(reply)
          const error = yield* Effect.flip(Effect.provide(decide, layer))
          assert.strictEqual(error.reason._tag, tag)
          assert.notInclude(JSON.stringify(error), key)
          assert.notInclude(error.message, "harbour at night")
        }
      }
      server.reply(Server.plain(404, {}), Server.plain(404, {}))
      assert.include((yield* Effect.flip(Effect.provide(decide, at.openAi(server)))).message, "layerSystemOne")
      assert.include((yield* Effect.flip(Effect.provide(decide, at.systemOne(server)))).message, "layerOpenAi")
    })
  )

  it.effect("needs a key for OpenAI, and checks its options", () =>
    Effect.gen(function* () {
      const layer = DecisionModels.layerOpenAi({ model: "gpt-6-luna" })
      const error = yield* Effect.flip(Effect.provide(decide, layer))
      assert.include(error.message, "OPENAI_API_KEY")
      // @ts-expect-error an option that is not there
      const wrong = DecisionModels.layerSystemOne({ model: "m", baseUrl: "http://localhost/v1" })
      assert.include((yield* Effect.flip(Effect.provide(decide, wrong))).message, "baseURL")
    }).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({}))))
  )

  it.effect("asks any chat model in one turn, and marks stated probabilities as not calibrated", () =>
    Effect.gen(function* () {
      const response = yield* decide
      assert.deepStrictEqual(plain(response.answers), {
        urgent: { probability: 0.75 },
        team: { label: "tech", probabilities: { billing: 0.04999999999999999, tech: 0.9, other: 0.04999999999999999 } },
        anger: { label: "calm", rating: 0.09999999999999998, probabilities: { calm: 0.9, cross: 0.09999999999999998 } }
      })
      assert.deepStrictEqual(response.metadata, { effectDeepagents: { calibrated: false } })
    }).pipe(
      Effect.provide(DecisionModels.layerChatModel()),
      Effect.provide(
        TestChatModel.reactive(({ messages, systemPrompt }) => {
          assert.include(systemPrompt, "B = tech: bugs")
          assert.isTrue(Message.text(messages[0] ?? Message.human("")).startsWith("> "))
          return '{"q1":0.75,"q2":"B","q3":"A"}'
        })
      )
    )
  )

  it.effect("takes the probabilities of a chat model from the tokens of its answer", () => {
    const token = (text: string, ...top: ReadonlyArray<readonly [string, number]>) => ({
      token: text,
      logprob: Math.log(top[0]?.[1] ?? 1),
      top_logprobs: top.map(([one, share]) => ({ token: one, logprob: Math.log(share) }))
    })
    const logprobs = [
      token('{"q1":"'),
      token("B", ["B", 0.6], ["A", 0.2], ["C", 0.1]),
      token('","q2": '),
      token('"A', ['"A', 0.5], ['"B', 0.3], ["?", 0.2]),
      token('","q3":"'),
      token('A"}', ["A", 0.9], ['A"}', 0.05], ["B", 0.05])
    ]
    const text = logprobs.map((one) => one.token).join("")
    const said = Message.ai(text, { providerData: { test: { logprobs } } })
    return Effect.gen(function* () {
      const { answers, metadata } = yield* decide
      assert.closeTo(answers.urgent.probability, 0.75, 1e-9)
      assert.strictEqual(answers.team.label, "billing")
      assert.closeTo(answers.team.probabilities.billing, 0.625, 1e-9)
      assert.closeTo(answers.anger.rating, 0.05, 1e-9)
      assert.deepStrictEqual(metadata, {})
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual(request?.parameters, { logprobs: true, top_logprobs: 3 })
    }).pipe(
      Effect.provide(DecisionModels.layerChatModel({ logprobs: { logprobs: true, top_logprobs: 3 } })),
      Effect.provide(TestChatModel.script([TestChatModel.message(said)]))
    )
  })

  it.effect("fails as the chat model fails", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(decide)
      assert.strictEqual(error.reason._tag, "QuotaExhaustedError")
    }).pipe(
      Effect.provide(
        DecisionModels.layerChatModel().pipe(
          Layer.provide(TestChatModel.script([TestChatModel.fail({ _tag: "QuotaExhausted" })]))
        )
      )
    )
  )
})
