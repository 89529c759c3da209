import { basename, dirname, relative } from "node:path"
import { assert, describe, it, vi } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, ChatModel, Content, Message, type ModelError, Tool, type Usage } from "effect-deepagents"
import type * as LlamaChatModel from "effect-deepagents/models/local/LlamaChatModel"
import { load } from "../../../src/models/local/internal/engine.ts"
import { makeWrapperTurns } from "../../../src/models/local/internal/wrapperTurn.ts"
import { isFull, sampled } from "../../scale.ts"
import { caller, definition, endless, file, layer, real, request, session, turn } from "./models.ts"
import { buildTinyGguf } from "./tiny-gguf.mjs"

vi.setConfig({ testTimeout: 60_000 })

type Choice = NonNullable<Parameters<typeof LlamaChatModel.layer>[0]["codec"]>

const choices: ReadonlyArray<Choice> = ["wrapper", "lfm2", "hermes", "qwen-xml", "gemma"]

const textOf = (parts: ReadonlyArray<ChatModel.TurnPart>) =>
  parts.map((part) => (part._tag === "TextDelta" ? part.text : "")).join("")

const usageOf = (message: Message.AiMessage): Usage.Usage => {
  assert(message.usage !== undefined)
  return message.usage
}

const failureOf = <A>(effect: Effect.Effect<A, ModelError.ModelError>) => Effect.flip(effect)

const weather = definition("get.weather", {
  type: "object",
  properties: {
    city: { enum: ["Bern", "Oslo"] },
    days: { type: "array", items: { type: "boolean" }, maxItems: 2 },
    unit: { $ref: "#/$defs/Unit" },
    note: { type: "string", maxLength: 5 }
  },
  required: ["city", "days", "unit"],
  $defs: { Unit: { type: "object", properties: { name: { const: "C" } }, required: ["name"] } }
})

const Weather = Schema.Struct({
  city: Schema.Literals(["Bern", "Oslo"]),
  days: Schema.Array(Schema.Boolean),
  unit: Schema.Struct({ name: Schema.Literal("C") }),
  note: Schema.optionalKey(Schema.String)
})

describe("LlamaChatModel", () => {
  describe("loads", () => {
    it.effect("a file, and tells its name and its context", () =>
      Effect.gen(function* () {
        const progress: Array<string> = []
        yield* Effect.gen(function* () {
          const line = yield* session
          const { message } = yield* turn(line, request("Hi"))
          assert.strictEqual(message.model, "named")
          const model = yield* ChatModel.ChatModel
          assert.strictEqual(model.contextWindowTokens, 512)
        }).pipe(
          Effect.provide(
            layer({
              model: file("named.gguf", buildTinyGguf({ ctx: 512 })),
              contextSize: 512,
              onProgress: (step) => Effect.sync(() => void progress.push(step._tag))
            })
          ),
          Effect.scoped
        )
        assert.include(progress, "Load")
      })
    )

    it.effect.runIf(isFull)("a relative path from the current directory; with a directory, from there", () =>
      Effect.gen(function* () {
        const path = file("near.gguf", buildTinyGguf({ ctx: 512 }))
        const places = [{ model: relative(process.cwd(), path) }, { model: basename(path), directory: dirname(path) }]
        for (const place of places) {
          const context = yield* Layer.build(layer({ ...place, contextSize: 512 }))
          assert.strictEqual(Context.get(context, ChatModel.ChatModel).modelId, "near")
        }
      }).pipe(Effect.scoped)
    )

    it.effect("no file that is not there or is no model: the error says which", () =>
      Effect.gen(function* () {
        for (const model of ["/nowhere/model.gguf", file("cut.gguf", buildTinyGguf().subarray(0, 5000))]) {
          const error = yield* failureOf(Effect.scoped(Layer.build(layer({ model }))))
          assert.strictEqual(error.reason._tag, "InvalidRequest")
          assert.include(error.message, "model")
          assert.isFalse(error.isRetryable)
        }
      })
    )

    it.effect.runIf(isFull)("again after it was released, and while another one is loaded", () =>
      Effect.gen(function* () {
        const once = Effect.scoped(Effect.flatMap(session, (line) => turn(line, request("Hi"))))
        const [first, second] = yield* Effect.all([
          Effect.provide(once, layer(), { local: true }),
          Effect.provide(once, layer(), { local: true })
        ])
        assert.strictEqual(textOf(first.parts), textOf(second.parts))
        const both = yield* Effect.all(
          [Effect.provide(once, layer(), { local: true }), Effect.provide(once, layer({ seed: 8 }), { local: true })],
          { concurrency: 2 }
        )
        assert.strictEqual(textOf(both[0].parts), textOf(first.parts))
      })
    )
  })

  for (const codec of sampled(choices)) {
    it.layer(layer({ codec, contextSize: 2048 }), { excludeTestServices: true })(`with ${codec}`, (it) => {
      it.effect("streams text, and says it in the message", () =>
        Effect.gen(function* () {
          const line = yield* session
          // The likeliest token each time: what is known already is computed in other batches, and rounds differently.
          const asked = request("Count to three: 😀 é 日本", { parameters: { temperature: 0 } })
          const { message, parts } = yield* turn(line, asked)
          assert.isAbove(parts.length, 1)
          assert.strictEqual(textOf(parts), Message.text(message))
          const { inputTokens, outputTokens } = usageOf(message)
          assert.isAbove(inputTokens, 10)
          assert.isAbove(outputTokens, 0)
          assert.isAtMost(outputTokens, 61)
          const again = yield* turn(line, asked)
          assert.strictEqual(textOf(again.parts), textOf(parts))
        }).pipe(Effect.scoped)
      )

      it.effect("reads a conversation on from its known part: the second round is cheap", () =>
        Effect.gen(function* () {
          const line = yield* session
          const long = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ")
          const asked = request(long, { tools: [weather], parameters: { maxTokens: 10 } })
          const first = yield* turn(line, asked)
          const call = { id: "1", name: weather.name, arguments: { city: "Bern" } }
          const answer = Message.tool("sunny", { toolCallId: "1", toolName: weather.name })
          const said = Message.ai("I look.", { toolCalls: [call] })
          const second = yield* turn(line, { ...asked, messages: [...asked.messages, said, answer] })
          const readUsage = ({ message }: typeof first) => {
            const { cacheReadTokens, inputTokens } = usageOf(message)
            return inputTokens - cacheReadTokens
          }
          assert.isAbove(usageOf(second.message).inputTokens, usageOf(first.message).inputTokens)
          assert.isBelow(readUsage(second), usageOf(second.message).inputTokens / 3)
        }).pipe(Effect.scoped)
      )

      it.effect("refuses a conversation that does not fit, before anything is computed", () =>
        Effect.gen(function* () {
          const line = yield* session
          const first = yield* turn(line, request("short"))
          const error = yield* failureOf(turn(line, request("long ".repeat(2500))))
          assert(error.reason._tag === "ContextOverflow")
          assert.strictEqual(error.reason.limit, 2048)
          assert.isAbove(error.reason.used ?? 0, 2048)
          const { message } = yield* turn(line, request("short"))
          assert.strictEqual(usageOf(message).cacheReadTokens, usageOf(first.message).inputTokens - 1)
        }).pipe(Effect.scoped)
      )

      it.effect("answers in a schema where no tools are offered", () =>
        Effect.gen(function* () {
          const line = yield* session
          const outputSchema = {
            type: "object",
            properties: { kind: { enum: ["a", "b"] }, list: { type: "array", items: { type: "null" }, maxItems: 2 } },
            required: ["kind", "list"]
          }
          const { message } = yield* turn(line, request("Answer.", { outputSchema, parameters: { maxTokens: 200 } }))
          const decode = Schema.decodeUnknownEffect(
            Schema.fromJsonString(Schema.Struct({ kind: Schema.Literals(["a", "b"]), list: Schema.Array(Schema.Null) }))
          )
          yield* decode(Message.text(message))
          assert.strictEqual(message.stopReason, "stop")
        }).pipe(Effect.scoped)
      )

      it.effect("reports once the rules of a schema that it can't enforce", () =>
        Effect.gen(function* () {
          const line = yield* session
          const outputSchema = {
            type: "object",
            // The name of a property is not a keyword.
            properties: { minimum: { type: "integer", minimum: 3, enum: [5] }, pattern: { const: "x", pattern: "^x" } },
            required: ["minimum", "pattern"]
          }
          const asked = request("Answer.", { outputSchema, parameters: { maxTokens: 100 } })
          const warnings = (parts: ReadonlyArray<ChatModel.TurnPart>) =>
            parts.flatMap((part) => (part._tag === "Warning" ? [part.message] : []))
          const [first] = warnings((yield* turn(line, asked)).parts)
          assert.isTrue(first?.endsWith(": minimum, pattern"), first)
          assert.deepStrictEqual(warnings((yield* turn(line, asked)).parts), [])
        }).pipe(Effect.scoped)
      )
    })

    it.effect(`with ${codec}: stops when its reader leaves, and goes on with the next turn`, () =>
      Effect.gen(function* () {
        const line = yield* session
        const few = yield* Stream.runCollect(Stream.take(line.nextTurn(request("Go on.")), 3))
        assert.lengthOf(few, 3)
        const started = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          Stream.runForEach(line.nextTurn(request("Go on.")), () => Deferred.succeed(started, undefined))
        )
        yield* Deferred.await(started)
        yield* Fiber.interrupt(fiber)
        const { message } = yield* turn(line, request("Go on.", { parameters: { maxTokens: 5 } }))
        assert.strictEqual(message.stopReason, "length")
        assert.isAbove(usageOf(message).cacheReadTokens, 0)
      }).pipe(Effect.scoped, Effect.provide(layer({ model: real ?? endless, codec, maxTokens: 900 })))
    )
  }

  describe("calls tools", () => {
    it.effect("with arguments held to their schema, also for a required call", () =>
      Effect.gen(function* () {
        const line = yield* session
        for (const toolChoice of ["required", { tool: weather.name }] as const) {
          const { message, parts } = yield* turn(line, request("The weather?", { tools: [weather], toolChoice }))
          const [call] = message.toolCalls
          assert(call !== undefined)
          assert.strictEqual(call.name, weather.name)
          yield* Schema.decodeUnknownEffect(Weather)(call.arguments)
          const start = parts.find((part) => part._tag === "ToolCallStart")
          assert.deepStrictEqual(start, { _tag: "ToolCallStart", id: call.id, name: weather.name })
          const streamed = parts.map((part) => (part._tag === "ToolCallDelta" && part.id === call.id ? part.delta : ""))
          assert.strictEqual(JSON.parse(streamed.join("")).city, call.arguments["city"])
        }
      }).pipe(Effect.scoped, Effect.provide(layer({ codec: "wrapper", contextSize: 2048, maxTokens: 300 })))
    )

    it.effect("and keeps the text of a call that its length cuts", () =>
      Effect.gen(function* () {
        const line = yield* session
        const text = definition("write", {
          type: "object",
          properties: { text: { type: "string", minLength: 90 } },
          required: ["text"]
        })
        const { message } = yield* turn(line, request("Write!", { tools: [text], toolChoice: "required" }))
        assert.deepStrictEqual(message.toolCalls, [])
        assert.strictEqual(message.stopReason, "length")
        const [malformed] = message.malformedToolCalls
        assert.strictEqual(malformed?.name, "write")
        assert.include(malformed?.raw, '"text"')
      }).pipe(Effect.scoped, Effect.provide(layer({ codec: "wrapper", maxTokens: 20 })))
    )

    it.effect("in a run: called, answered, and asked again", () =>
      Effect.gen(function* () {
        let calls = 0
        const look = Tool.make("look", {
          description: "Looks",
          parameters: { far: Schema.Boolean },
          execute: ({ far }) => Effect.sync(() => `seen ${++calls} ${far}`)
        })
        const agent = Agent.make({ name: "looker", prompt: "Look.", tools: [look], maxRounds: 2 })
        const result = yield* Agent.run(agent, "Look around").pipe(
          Effect.provide(layer({ model: caller, codec: "wrapper", contextSize: 4096, maxTokens: 400 }))
        )
        assert.isAbove(calls, 0)
        const roles = result.messages.map((message) => message.role)
        assert.deepStrictEqual(roles.slice(0, 3), ["human", "ai", "tool"])
        assert.include(
          result.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : [])).join(),
          "seen 1"
        )
      })
    )
  })

  describe("shares its sequences", () => {
    const ask = (line: ChatModel.ModelSession, text: string) => turn(line, request(text))

    it.effect("turn by turn: a run that waits for another one holds none", () =>
      Effect.gen(function* () {
        const parent = yield* session
        const child = yield* session
        yield* ask(parent, "I am the parent")
        yield* ask(child, "I am the child")
        const both = yield* Effect.all([ask(parent, "Again"), ask(child, "Again")], { concurrency: 2 })
        assert.lengthOf(both, 2)
      }).pipe(Effect.scoped, Effect.provide(layer({ sequences: 1 })))
    )

    it.effect("and gives a session the sequence that knows its conversation", () =>
      Effect.gen(function* () {
        const parent = yield* session
        const child = yield* session
        const long = "a parent with a long story to tell ".repeat(5)
        yield* ask(parent, long)
        yield* ask(child, "I am the child")
        yield* ask(child, "I am still the child")
        const { message } = yield* ask(parent, long)
        const { cacheReadTokens, inputTokens } = usageOf(message)
        assert.strictEqual(cacheReadTokens, inputTokens - 1)
      }).pipe(Effect.scoped, Effect.provide(layer({ sequences: 2 })))
    )

    it.effect("among more runs than there are, all of which get their turn", () =>
      Effect.gen(function* () {
        const answers = yield* Effect.forEach(
          [1, 2, 3, 4, 5, 6],
          (number) =>
            Effect.scoped(Effect.flatMap(session, (line) => Effect.retry(ask(line, `Number ${number}`), { times: 0 }))),
          { concurrency: 6 }
        )
        assert.lengthOf(answers, 6)
        for (const { message } of answers) assert.isAbove(usageOf(message).outputTokens, 0)
      }).pipe(Effect.provide(layer({ sequences: 2 })))
    )
  })

  it.effect("computes beside the event loop", () =>
    Effect.gen(function* () {
      let ticks = 0
      let over = false
      const tick = (): void => {
        ticks++
        if (!over) setImmediate(tick)
      }
      setImmediate(tick)
      const { message } = yield* Effect.flatMap(session, (line) => turn(line, request("Go on.")))
      over = true
      assert.isAbove(ticks, usageOf(message).outputTokens)
    }).pipe(Effect.scoped, Effect.provide(layer({ model: real ?? endless, maxTokens: 50 })))
  )

  it.effect("takes parameters of a request, and refuses wrong ones", () =>
    Effect.gen(function* () {
      const line = yield* session
      const { message } = yield* turn(line, request("Go on.", { parameters: { maxTokens: 3, other: {} } }))
      assert.isAtMost(usageOf(message).outputTokens, 3)
      const error = yield* failureOf(turn(line, request("Hi", { parameters: { temperature: "hot" } })))
      assert.strictEqual(error.reason._tag, "InvalidRequest")
      assert.include(error.message, "temperature")
    }).pipe(Effect.scoped, Effect.provide(layer({ model: real ?? endless })))
  )

  it.effect("is released at once, and fails a turn that somebody still waits for", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.gen(function* () {
        const line = yield* session
        const started = yield* Deferred.make<void>()
        const running = yield* Effect.forkDetach(
          Stream.runForEach(line.nextTurn(request("Go on.")), () => Deferred.succeed(started, undefined))
        )
        yield* Deferred.await(started)
        return running
      }).pipe(Effect.scoped, Effect.provide(layer({ model: real ?? endless, maxTokens: 900 })))
      const error = yield* failureOf(Fiber.join(fiber))
      assert.include(error.message, "the model was released")
    })
  )
})

describe("the beginning of a prompt", () => {
  it.effect("is there once, also if it begins a message", () =>
    Effect.gen(function* () {
      const model = file("begin.gguf", buildTinyGguf({ endBias: 3, template: "chatml", bos: "<|im_start|>" }))
      const engine = yield* load({ provider: "llama", model: "begin" }, { model, gpu: false, threads: 1 })
      const wrapper = engine.library.resolveChatWrapper(engine.model, { warningLogs: false })
      const asked = {
        systemPrompt: "You are brief.",
        turns: [{ role: "human" as const, content: [Content.text("Hi")], index: 0 }],
        tools: [],
        toolChoice: "auto" as const,
        outputSchema: undefined,
        settings: {}
      }
      const { tokens } = makeWrapperTurns(engine, wrapper)(asked, undefined)
      const begin = engine.model.tokens.bos
      assert.strictEqual(tokens[0], begin)
      assert.notStrictEqual(tokens[1], begin)
      assert.include(engine.model.detokenize([...tokens], true), "<|im_start|>system\nYou are brief.")
    }).pipe(Effect.scoped)
  )
})

describe("an answer in a schema", () => {
  it.effect("is held to it by a grammar, of an agent without tools at once, with them when it is asked again", () =>
    Effect.gen(function* () {
      const output = Schema.Struct({ name: Schema.Literals(["Ada", "Eve"]), old: Schema.Boolean })
      const look = Tool.make("look", { description: "", parameters: {}, execute: () => Effect.succeed("Ada") })
      for (const tools of [[], [look]]) {
        const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", output, tools }), "Who?").pipe(
          Effect.provide(layer({ temperature: 0 }))
        )
        assert.include(["Ada", "Eve"], result.output.name)
      }
    })
  )
})
