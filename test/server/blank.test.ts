/** Inputs without a word and a file: each protocol refuses them with the name of the field, and nothing is begun. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import { OpenAI } from "openai"
import { ask, serve } from "./door.ts"
import { services } from "./packets/story.ts"

const runs = Server.layer({ helper: Agent.make({ name: "helper", prompt: "" }) }).pipe(
  Layer.provide(TestChatModel.reactive(() => "Hello."))
)
const protocols = ["aiSdk", "agUi", "openAi", "langGraph", "a2a"] as const

/** Contents that say nothing, as texts and as lists of parts. */
const texts = ["", " \n\t", "\u00a0\u3000"]
const contents = [
  ...texts,
  [],
  [{ type: "text", text: " " }],
  [
    { type: "text", text: "" },
    { type: "text", text: "\n" }
  ]
]
const parts = contents.filter((one) => typeof one !== "string")

const rpc = (message: object) => ({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } })

const requests: ReadonlyArray<readonly [path: string, field: RegExp, bodies: ReadonlyArray<object>]> = [
  [
    "/threads/t/runs",
    /^input: /,
    [...texts, ...contents.map((content) => ({ content }))].map((input) => ({ agent: "helper", input }))
  ],
  ["/threads/t/steer", /^input: /, [...texts, ...parts.map((content) => ({ content }))].map((input) => ({ input }))],
  ["/api/chat", /^messages: /, parts.map((some) => ({ id: "t", messages: [{ id: "m", role: "user", parts: some }] }))],
  [
    "/ag-ui",
    /^messages: /,
    contents.map((content) => ({ threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content }] }))
  ],
  [
    "/langgraph/threads/t/runs",
    /^input\.messages: /,
    contents.map((content) => ({
      assistant_id: "helper",
      if_not_exists: "create",
      input: { messages: [{ role: "user", content }] }
    }))
  ],
  [
    "/v1/chat/completions",
    /^messages: /,
    contents.map((content) => ({ model: "helper", messages: [{ role: "user", content }] }))
  ],
  [
    "/v1/responses",
    /^input: /,
    [...texts, ...contents.map((content) => [{ role: "user", content }])].map((input) => ({ model: "helper", input }))
  ]
]

describe("an input without a word and a file", () => {
  it.live("is refused by each protocol with the name of its field, and makes no thread", () =>
    Effect.gen(function* () {
      const url = yield* serve(runs, { protocols })
      for (const [path, field, bodies] of requests) {
        for (const body of bodies) {
          const refused = yield* ask(`${url}${path}`, { body })
          const name = `${path} ${JSON.stringify(body)}`
          assert.strictEqual(refused.status, 400, name)
          assert.match(String(refused.at("detail")), field, name)
        }
      }
      for (const some of [[], [{ text: " " }], [{ text: "" }, { text: "\n" }]]) {
        const refused = yield* ask(`${url}/a2a`, { body: rpc({ messageId: "m", role: "ROLE_USER", parts: some }) })
        assert.strictEqual(refused.at("error", "code"), -32_602)
        assert.match(String(refused.at("error", "message")), /^message\.parts: /)
      }
      assert.strictEqual((yield* ask(`${url}/threads`)).at("threads", "length"), 0)
      assert.strictEqual((yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "." } })).status, 202)
      yield* ask(`${url}/threads/t/events`)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("is told to the official client of OpenAI in its own form, as are other refusals", () =>
    Effect.gen(function* () {
      const url = yield* serve(runs, { protocols })
      const failing = (apiKey: string, model: string, content: string) =>
        Effect.promise(async () => {
          const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
          const failure: unknown = await client.chat.completions
            .create({ model, messages: [{ role: "user", content }] })
            .then(
              () => undefined,
              (error: unknown) => error
            )
          return failure instanceof OpenAI.APIError
            ? { status: failure.status, type: failure.type, param: failure.param, message: failure.message }
            : undefined
        })
      const type = "invalid_request_error"
      assert.deepStrictEqual(yield* failing("token-of-ada", "helper", " "), {
        status: 400,
        type,
        param: "messages",
        message: "400 messages: the last message has no text and no file"
      })
      const missing = yield* failing("token-of-ada", "nobody", "Hello")
      assert.include(missing, { status: 400, type, param: null })
      assert.include(missing?.message ?? "", "helper")
      assert.include(yield* failing("nobody", "helper", "Hello"), { status: 401, type })
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
