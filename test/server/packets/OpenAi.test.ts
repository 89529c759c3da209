/** The official client of OpenAI against the server: chat completions and responses, streamed and whole. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import { OpenAI } from "openai"
import { ask, serve } from "../door.ts"
import { serverOf, services, type Story } from "./story.ts"

const round = (...calls: Story["rounds"][number]["calls"]): Story["rounds"][number] => ({
  calls,
  reasoning: true,
  text: true,
  restarts: false
})
const plain: Story = { rounds: [round("add", "ask")], end: "text", decisions: [true] }
const quiet: Story = { rounds: [round("add"), round("cite")], end: "text", decisions: [true] }

const clientOf = (url: string) => new OpenAI({ apiKey: "token-of-ada", baseURL: `${url}/v1`, maxRetries: 0 })

const said = "This is round 0. \n\nThis is round 1. \n\nAll is done. 🙂"

describe("OpenAI", () => {
  it.live("answers chat completions, streamed and whole", () =>
    Effect.gen(function* () {
      const url = yield* serve(serverOf(quiet), { protocols: ["openAi"] })
      const client = clientOf(url)
      const body = { model: "helper", messages: [{ role: "user" as const, content: "go" }] }
      yield* Effect.promise(async () => {
        assert.deepStrictEqual(
          (await client.models.list()).data.map(({ id }) => id),
          ["helper"]
        )
        const whole = await client.chat.completions.create(body)
        const [choice] = whole.choices
        assert.deepStrictEqual([choice?.message.content, choice?.finish_reason], [said, "stop"])
        assert.strictEqual(choice?.message.tool_calls, undefined)
        assert.strictEqual(whole.usage?.prompt_tokens, 21)
        const helper = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } })
        assert.strictEqual(await helper.finalContent(), said)
        assert.strictEqual((await helper.totalUsage()).completion_tokens, 9)
        const chunks = []
        for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) chunks.push(chunk)
        assert.strictEqual(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), said)
        // In a thread of its own name, only the last message counts.
        const options = { headers: { "x-thread": "mine" } }
        await client.chat.completions.create(body, options)
        await client.chat.completions.create({ ...body, messages: [...body.messages, ...body.messages] }, options)
      })
      const state = yield* ask(`${url}/threads/mine/state`)
      assert.strictEqual(state.status, 200)
      const wrong = yield* ask(`${url}/v1/chat/completions`, { body: { model: "nobody", messages: body.messages } })
      assert.strictEqual(wrong.status, 400)
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("answers responses, streamed and whole, and goes on with the response before", () =>
    Effect.gen(function* () {
      const url = yield* serve(serverOf(quiet), { protocols: ["openAi"] })
      const client = clientOf(url)
      const id = yield* Effect.promise(async () => {
        const stream = client.responses.stream({ model: "helper", input: "go" })
        const numbers: Array<number> = []
        for await (const event of stream) numbers.push(event.sequence_number)
        assert.deepStrictEqual(
          [...new Set(numbers)].toSorted((left, right) => left - right),
          numbers
        )
        const final = await stream.finalResponse()
        assert.strictEqual(final.status, "completed")
        assert.strictEqual(final.output_text, said.replaceAll("\n\n", ""))
        assert.isTrue(final.output.every(({ type }) => type === "message"))
        assert.strictEqual(final.usage?.input_tokens, 21)
        const again = await client.responses.retrieve(final.id)
        assert.deepStrictEqual([again.id, again.status, again.output_text], [final.id, "completed", final.output_text])
        const next = await client.responses.create({ model: "helper", input: "go", previous_response_id: final.id })
        assert.strictEqual(next.output_text, final.output_text)
        const same = await client.responses.retrieve(final.id)
        assert.strictEqual(same.output_text, final.output_text)
        return next.id
      })
      for (const [path, token] of [
        [id, "token-of-eve"],
        ["resp_x.y", "token-of-ada"],
        ["../threads", "token-of-ada"]
      ] as const) {
        assert.strictEqual((yield* ask(`${url}/v1/responses/${encodeURIComponent(path)}`, { token })).status, 404)
      }
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("goes on behind any event of a stream, also when the server was started again", () =>
    Effect.gen(function* () {
      const url = yield* serve(serverOf(quiet), { protocols: ["openAi"] })
      const client = clientOf(url)
      type Event = OpenAI.Responses.ResponseStreamEvent
      const summarize = (events: ReadonlyArray<Event>) => ({
        text: events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join(""),
        others: events.flatMap(({ sequence_number: number, type }) =>
          type === "response.output_text.delta" ? [] : [`${number} ${type}`]
        )
      })
      const readEvents = async (events: AsyncIterable<Event>) => {
        const all: Array<Event> = []
        for await (const event of events) all.push(event)
        return all
      }
      const live = yield* Effect.promise(async () =>
        readEvents(await client.responses.create({ model: "helper", input: "go", stream: true }))
      )
      const [first] = live
      const id = first?.type === "response.created" ? first.response.id : ""
      const again = clientOf(yield* serve(serverOf(quiet), { protocols: ["openAi"] }))
      for (const reader of [client, again]) {
        for (const [index, { sequence_number: after }] of live.slice(0, -1).entries()) {
          const query = { stream: true, starting_after: after } as const
          const rest = yield* Effect.promise(async () => readEvents(await reader.responses.retrieve(id, query)))
          assert.deepStrictEqual(summarize([...live.slice(0, index + 1), ...rest]), summarize(live))
        }
      }
      for (const after of ["-1", "x", ""]) {
        const wrong = yield* ask(`${url}/v1/responses/${id}?stream=true&starting_after=${after}`)
        assert.strictEqual(wrong.status, 400)
      }
      assert.include(
        (yield* ask(`${url}/v1/responses/${id}?stream=true&starting_after=999999`)).text,
        "response.completed"
      )
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("names the agent that answered in a response that is read again", () =>
    Effect.gen(function* () {
      const agents = {
        first: Agent.make({ name: "first", prompt: "" }),
        second: Agent.make({ name: "second", prompt: "" })
      }
      const runs = Server.layer(agents).pipe(Layer.provide(TestChatModel.reactive(() => "hello")))
      const client = clientOf(yield* serve(runs, { protocols: ["openAi"] }))
      yield* Effect.promise(async () => {
        const { id, model } = await client.responses.create({ model: "second", input: "go" })
        assert.deepStrictEqual([model, (await client.responses.retrieve(id)).model], ["second", "second"])
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("leaves the words of a turn that began again out of a response and of a whole completion", () =>
    Effect.gen(function* () {
      const again: Story = { ...quiet, rounds: [round("add"), { ...round("cite"), restarts: true }] }
      const url = yield* serve(serverOf(again), { protocols: ["openAi"] })
      const client = clientOf(url)
      yield* Effect.promise(async () => {
        const stream = client.responses.stream({ model: "helper", input: "go" })
        const items: Array<string> = []
        for await (const event of stream) {
          if (event.type === "response.output_item.done") items.push(`${event.output_index} ${event.item.id}`)
        }
        assert.lengthOf(new Set(items), 4)
        const final = await stream.finalResponse()
        assert.strictEqual(final.output_text, said.replaceAll("\n\n", ""))
        assert.strictEqual((await client.responses.retrieve(final.id)).output_text, final.output_text)
        const whole = await client.chat.completions.create({
          model: "helper",
          messages: [{ role: "user", content: "go" }]
        })
        assert.strictEqual(whole.choices[0]?.message.content, said)
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("says that a decision is needed, which these clients can't make", () =>
    Effect.gen(function* () {
      const url = yield* serve(serverOf(plain), { protocols: ["openAi"] })
      const client = clientOf(url)
      yield* Effect.promise(async () => {
        const chat = await client.chat.completions.create({
          model: "helper",
          messages: [{ role: "user", content: "go" }]
        })
        assert.match(chat.choices[0]?.message.content ?? "", /waits for a decision.*\n- pay/u)
        const response = await client.responses.create({ model: "helper", input: "go" })
        assert.strictEqual(response.status, "incomplete")
        assert.include(JSON.stringify(response.output), "deepagents:approval")
      })
      // It has a mailbox of its own.
      const failing = yield* serve(serverOf({ ...quiet, rounds: [], end: "failure" }), { protocols: ["openAi"] }).pipe(
        Effect.provide(Layer.fresh(services))
      )
      const failed = yield* ask(`${failing}/v1/responses`, { body: { model: "helper", input: "go" } })
      assert.strictEqual(failed.at("status"), "failed")
      const body = { model: "helper", messages: [{ role: "user", content: "go" }] }
      assert.strictEqual((yield* ask(`${failing}/v1/chat/completions`, { body })).status, 500)
    }).pipe(Effect.provide(Layer.fresh(services)))
  )
})
