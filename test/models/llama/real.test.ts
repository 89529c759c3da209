/** What holds on a real model, which is small enough for a test and knows nothing of tools. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Agent, type AgentEvent, ChatModel, Message, Middleware, Tool } from "effect-deepagents"
import * as LlamaChatModel from "effect-deepagents/models/local/LlamaChatModel"
import { TestClock } from "effect/testing"
import { isFull } from "../../scale.ts"
import { folder } from "../../sessions/places.ts"
import { request, turn } from "./models.ts"
import { weights } from "./weights.ts"

vi.setConfig({ testTimeout: 120_000 })

const model = "path" in weights ? weights.path : ""

const options: Parameters<typeof LlamaChatModel.layer>[0] = {
  model,
  gpu: false,
  threads: 1,
  contextSize: 1024,
  maxTokens: 80,
  temperature: 0,
  seed: 7
}

const isWarning = (event: AgentEvent.AgentEvent) => event._tag === "Warning" && event.code === "tools-not-called"

describe.skipIf("problem" in weights || !isFull)("a real model", () => {
  it.layer(LlamaChatModel.layer(options), { excludeTestServices: true })("SmolLM2-135M", (it) => {
    const asked: Array<string> = []
    const weather = Tool.make("get_weather", {
      description: "Tells the weather of a city",
      parameters: { city: Schema.Literals(["Paris", "Oslo", "Bern"]), days: Schema.Int },
      execute: ({ city, days }) => Effect.sync(() => (asked.push(`${city} ${days}`), `${city}: 21 degrees and sunny.`))
    })
    /** It calls no tool by itself: the first turn is made to, by the grammar of a call. */
    const calling = Middleware.make({
      name: "calling",
      wrapModelCall: (request, next) =>
        next(
          request.messages.some(({ role }) => role === "tool")
            ? request
            : { ...request, toolChoice: "required" as const }
        )
    })

    it.effect("calls a tool by grammar, reads its result, and answers; the second round reads from memory", () =>
      Effect.gen(function* () {
        const agent = Agent.make({
          name: "a",
          prompt: "You answer in one sentence.",
          tools: [weather],
          middleware: [calling]
        })
        const result = yield* Agent.run(agent, "What is the weather in Paris today?")
        assert.strictEqual(asked.length, 1)
        assert.match(asked[0] ?? "", /^(?:Paris|Oslo|Bern) -?\d+$/)
        assert.deepStrictEqual(
          result.messages.map(({ role }) => role),
          ["human", "ai", "tool", "ai"]
        )
        assert.isAbove(result.text.length, 10)
        const turns = result.messages.flatMap((message) => (message.role === "ai" ? [message.usage] : []))
        const [first, second] = turns
        assert(first !== undefined && second !== undefined)
        assert.isAbove(second.cacheReadTokens, first.inputTokens * 0.9)
        assert.strictEqual(result.stopReason, "completed")
      })
    )

    it.effect("answers in a schema, 10 times of 10", () =>
      Effect.gen(function* () {
        const output = Schema.Struct({
          name: Schema.NonEmptyString.check(Schema.isMaxLength(20)),
          drinks: Schema.Literals(["tea", "coffee", "water"])
        })
        const agent = Agent.make({ name: "a", prompt: "You describe people.", output })
        const people = ["Ada", "Eve", "Bob", "Ann", "Max", "Zoe", "Ian", "Kim", "Leo", "Mia"]
        for (const person of people) {
          const result = yield* Agent.run(agent, `${person} drinks tea.`)
          assert.isTrue(Schema.is(output)(result.output))
          assert.strictEqual(result.rounds, 1, "no repair was needed")
        }
      })
    )

    it.effect("warns once that it calls none of the tools that it is offered", () =>
      Effect.gen(function* () {
        const agent = Agent.make({ name: "a", prompt: "You are brief.", tools: [weather] })
        const warnings: Array<string> = []
        for (const question of ["What is the weather in Paris?", "And in Oslo?"]) {
          const events = yield* Stream.runCollect(Agent.stream(agent, question))
          for (const event of events) if (isWarning(event)) warnings.push(event._tag === "Warning" ? event.message : "")
        }
        assert.strictEqual(warnings.length, 1)
        assert.include(warnings[0], "was offered tools and called none, and its chat template has no tools")
      })
    )
  })

  it.effect("is loaded by its first turn, kept while turns come, and given back when none did for a while", () =>
    Effect.gen(function* () {
      let loads = 0
      const isCounted = (progress: { readonly _tag: string; readonly fraction?: number }) =>
        Effect.sync(() => {
          if (progress.fraction === 1) loads++
        })
      yield* Effect.gen(function* () {
        const { contextWindowTokens, modelId } = yield* ChatModel.ChatModel
        assert.deepStrictEqual([modelId, contextWindowTokens], ["SmolLM2-135M-Instruct.Q4_1", 1024])
        assert.strictEqual(loads, 0)
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        const first = yield* turn(session, request("Hi"))
        assert.strictEqual(loads, 1)
        yield* TestClock.adjust("59 seconds")
        const history = [Message.human("Hi"), first.message, Message.human("And you?")]
        const second = yield* turn(session, request(history))
        assert.strictEqual(loads, 1)
        assert.isAbove(second.message.usage?.cacheReadTokens ?? 0, 10)
        yield* TestClock.adjust("61 seconds")
        // Giving memory back is no matter of the clock.
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
        const third = yield* turn(session, request(history))
        assert.strictEqual(loads, 2)
        assert.strictEqual(third.message.usage?.cacheReadTokens, 0)
        assert.deepStrictEqual(Message.text(third.message), Message.text(second.message))
      }).pipe(
        Effect.scoped,
        Effect.provide(LlamaChatModel.layer({ ...options, maxTokens: 10, idle: "1 minute", onProgress: isCounted }))
      )
      const gone = LlamaChatModel.layer({ ...options, model: `${model}.not`, idle: "1 minute" })
      const error = yield* Effect.flip(Effect.provide(Effect.void, gone))
      assert.include(error.message, "no such model file")
    })
  )

  it.effect("reads the beginning of its prompts from the disk, and only what it wrote", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const systemPrompt = Array.from({ length: 20 }, (_, index) => `Rule ${index}: be kind.`).join(" ")
      const ask = (text: string) =>
        Effect.gen(function* () {
          const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
          const { message } = yield* turn(session, request(text, { systemPrompt }))
          return { text: Message.text(message), read: message.usage?.cacheReadTokens ?? 0 }
        }).pipe(
          Effect.scoped,
          Effect.provide(LlamaChatModel.layer({ ...options, maxTokens: 8, cacheDirectory: path }), { local: true })
        )
      const written = yield* ask("Hi there")
      assert.strictEqual(written.read, 0)
      const [file = ""] = readdirSync(path)
      assert.lengthOf(readdirSync(path), 1)
      const again = yield* ask("Hi there")
      assert.isAbove(again.read, 150)
      assert.strictEqual(again.text, written.text)
      const bytes = readFileSync(join(path, file))
      writeFileSync(join(path, file), Buffer.from(bytes).fill(7, 4096, 5000))
      assert.deepStrictEqual(yield* ask("Hi there"), written)
      assert.deepStrictEqual(readdirSync(path), [file])
      assert.isTrue(readFileSync(join(path, file)).equals(bytes))
    }).pipe(Effect.scoped)
  )
})
