import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Layer, Schema, Stream } from "effect"
import { Agent, ChatModel, type Json, Message, ModelError, Tool, ToolOutput } from "effect-deepagents"
import { AgentTest, Cassette, TestChatModel } from "effect-deepagents/testing"

const request = (changes: Partial<ChatModel.ModelRequest> = {}): ChatModel.ModelRequest => ({
  messages: [Message.human("Hi")],
  systemPrompt: "Be brief.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: ChatModel.turnPurpose,
  ...changes
})

const stream = (asked: ChatModel.ModelRequest) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      return session.nextTurn(asked)
    })
  )

/** The text of one turn. */
const ask = (changes?: Partial<ChatModel.ModelRequest>) =>
  Effect.map(Stream.runCollect(stream(request(changes))), (parts) => {
    const last = parts.at(-1)
    assert(last?._tag === "TurnDone")
    return Message.text(last.message)
  })

const temporary = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return `${yield* fs.makeTempDirectoryScoped()}/cassette.jsonl`
})

const contents = (file: string) => FileSystem.FileSystem.use((fs) => fs.readFileString(file))

const recordWith = (
  file: string,
  turns: ReadonlyArray<TestChatModel.Turn>,
  options?: NonNullable<Parameters<typeof Cassette.auto>[1]>
) => Layer.provide(Cassette.record(file, options), TestChatModel.script(turns))

/** A model that must not be asked. */
const noModel = Layer.succeed(
  ChatModel.ChatModel,
  ChatModel.ChatModel.of({
    modelId: "scripted",
    provider: "test",
    supportsVision: true,
    contextWindowTokens: undefined,
    makeSession: Effect.die(new Error("asked for a session"))
  })
)

const shout = Tool.make("shout", {
  description: "Says it loud",
  parameters: { text: Schema.String },
  execute: ({ text }) => Effect.succeed(text.toUpperCase())
})

const crier = Agent.make({ name: "crier", prompt: "You cry.", tools: [shout] })

const conversation = [
  TestChatModel.calls([{ name: "shout", arguments: { text: "news" } }], { reasoning: "hm", usage: { inputTokens: 7 } }),
  TestChatModel.text(["I said ", "NEWS."], { usage: { outputTokens: 3 } })
]

describe("Cassette", () => {
  it.effect("gives a scope recordings of its own, in any order of requests", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      const askIn = (scope: string) => Effect.provideService(ask(), Cassette.Scope, scope)
      yield* Effect.forEach(["one", "two", ""], askIn).pipe(Effect.provide(recordWith(file, ["1", "2", "none"])))
      const replayed = yield* Effect.forEach(["", "two", "one"], askIn).pipe(Effect.provide(Cassette.replay(file)))
      assert.deepStrictEqual(replayed, ["none", "2", "1"])
      const missing = yield* Effect.flip(askIn("three").pipe(Effect.provide(Cassette.replay(file))))
      assert.include(missing.message, "the scope differs")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("replays a recorded run, part by part, without the model", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      const shape = Effect.map(AgentTest.events(crier, "News, please"), (events) =>
        events.map((event) => [
          event._tag,
          ...(event._tag === "TextDelta" || event._tag === "ReasoningDelta" ? [event.text] : []),
          ...(event._tag === "RoundCompleted" ? [event.usage] : [])
        ])
      )
      const recorded = yield* Effect.provide(shape, recordWith(file, conversation))
      assert.isTrue(recorded.some(([tag]) => tag === "RunCompleted"))
      const replayed = yield* Effect.provide(shape, Cassette.replay(file))
      assert.deepStrictEqual(replayed, recorded)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("replays the model's facts", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      const facts = Effect.map(ChatModel.ChatModel, ({ makeSession: _, ...rest }) => rest)
      const options = {
        provider: "acme",
        modelId: "m-1",
        supportsVision: false,
        contextWindowTokens: 1000,
        structuredOutput: "tool",
        prices: { input: 1, output: 2, cacheRead: 0.1 }
      } as const
      const recorded = yield* Effect.provide(
        facts,
        Layer.provide(Cassette.record(file), TestChatModel.script([], options))
      )
      assert.deepStrictEqual(recorded, options)
      assert.deepStrictEqual(yield* Effect.provide(facts, Cassette.replay(file)), options)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("recognises a request with any ids, usage, hints, purpose and order of keys", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      const history = (id: string, parameters: Json.JsonObject, inputTokens: number) => ({
        messages: [
          Message.human("Go"),
          Message.ai("", {
            toolCalls: [{ id, name: "f", arguments: {} }],
            usage: {
              inputTokens,
              outputTokens: 0,
              cacheReadTokens: 0,
              cacheWriteTokens: 0,
              reasoningTokens: 0
            }
          }),
          Message.tool("done", { toolCallId: id, toolName: "f" })
        ],
        parameters,
        cacheHints: [inputTokens]
      })
      yield* Effect.provide(ask(history("a", { x: 1, y: 2 }, 1)), recordWith(file, ["yes"]))
      const text = yield* Effect.provide(
        ask({ ...history("b", { y: 2, x: 1 }, 2), purpose: "summary" }),
        Cassette.replay(file)
      )
      assert.strictEqual(text, "yes")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("gives the n-th of identical requests the n-th recording, and no more", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      yield* Effect.provide(Effect.all([ask(), ask()]), recordWith(file, ["first", "second"]))
      const replay = Effect.gen(function* () {
        assert.strictEqual(yield* ask(), "first")
        assert.strictEqual(yield* ask(), "second")
        const error = yield* Effect.flip(ask())
        assert.include(error.message, `${file} has 2 recordings of this request, which was made once more`)
        assert.isFalse(error.isRetryable)
      })
      yield* Effect.provide(replay, Cassette.replay(file))
      yield* Effect.provide(replay, Cassette.replay(file))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  const tool = (description: string) => ({ name: "f", description, parameters: { type: "object" }, annotations: {} })

  it.effect.each<[string, Partial<ChatModel.ModelRequest>, ReadonlyArray<string>]>([
    [
      "the system prompt",
      { systemPrompt: "Be long." },
      ["the system prompt differs", "recorded: Be brief.", "now: Be long."]
    ],
    ["a new tool", { tools: [tool("it"), { ...tool("it"), name: "g" }] }, ["tool g is new"]],
    ["a tool that is gone", { tools: [] }, ["tool f is gone"]],
    ["a tool", { tools: [tool("that")] }, ["tool f differs", `"it"`, `"that"`]],
    ["the tool choice", { toolChoice: { tool: "f" } }, ["the tool choice differs", `now: {"tool":"f"}`]],
    ["the output schema", { outputSchema: { type: "string" } }, ["the output schema differs", "recorded: nothing"]],
    ["the parameters", { parameters: { temperature: 1 } }, ["the parameters differ", `now: {"temperature":1}`]],
    [
      "a message",
      { messages: [Message.human("Hi"), Message.human("How are they?")] },
      ["message 2 (human) differs", "2 now, 2 recorded", "How are they?"]
    ],
    [
      "a message more",
      { messages: [Message.human("Hi"), Message.human("How are you?"), Message.ai("Fine")] },
      ["message 3 (ai) differs", "3 now, 2 recorded", "recorded: nothing"]
    ]
  ])("a miss says what differs from the most similar request: %s", ([, changes, expected]) =>
    Effect.gen(function* () {
      const file = yield* temporary
      const recorded = { tools: [tool("it")], messages: [Message.human("Hi"), Message.human("How are you?")] }
      const other = { systemPrompt: "Something else altogether.", messages: [Message.ai("What?")] }
      yield* Effect.provide(
        Effect.all([ask(other), ask(recorded), ask(other)]),
        recordWith(file, ["else", "fine", "else"])
      )
      const error = yield* Effect.flip(Effect.provide(ask({ ...recorded, ...changes }), Cassette.replay(file)))
      assert(error._tag === "ModelError")
      assert.strictEqual(error.reason._tag, "InvalidRequest")
      assert.include(error.message, `${file} has no recording of this request; the most similar one is turn 2, but `)
      for (const text of expected) assert.include(error.message, text)
      assert.strictEqual(
        error.message.split("; ").length,
        2 + (expected.some((text) => text.includes(" now,")) ? 1 : 0)
      )
      assert.include(error.message, "record it anew with Cassette.record")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("records whole turns only: no failures, nothing interrupted", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(ask())
        assert.strictEqual(error.reason._tag, "Overloaded")
        const started = yield* Deferred.make<void>()
        const fiber = yield* stream(request()).pipe(
          Stream.runForEach(() => Deferred.succeed(started, undefined)),
          Effect.forkChild
        )
        yield* Deferred.await(started)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* ask(), "at last")
      }).pipe(
        Effect.provide(
          recordWith(file, [
            TestChatModel.fail({ _tag: "Overloaded" }, { after: "I am" }),
            TestChatModel.hangAfter("I am"),
            "at last"
          ])
        )
      )
      const text = yield* contents(file)
      assert.notInclude(text, "I am")
      assert.strictEqual(yield* Effect.provide(ask(), Cassette.replay(file)), "at last")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("writes each value once, and never mixes the lines of turns at once", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      const asked = Array.from({ length: 20 }, (_, index) => ({
        messages: [Message.human("the same beginning"), Message.human(`number ${index}`)]
      }))
      const all = Effect.forEach(asked, (changes) => ask(changes), { concurrency: "unbounded" })
      const live = Layer.provide(
        Cassette.record(file),
        TestChatModel.reactive(({ messages }) => `to ${Message.text(messages[1]!)}`)
      )
      const recorded = yield* Effect.provide(all, live)
      assert.deepStrictEqual(
        recorded,
        asked.map((_, index) => `to number ${index}`)
      )
      assert.deepStrictEqual(yield* Effect.provide(all, Cassette.replay(file)), recorded)
      const text = yield* contents(file)
      assert.lengthOf(text.match(/the same beginning/g) ?? [], 1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("a write that fails, fails the turn", () =>
    Effect.gen(function* () {
      const file = yield* temporary
      const error = yield* Effect.flip(
        Effect.provide(ask(), Layer.provide(recordWith(`${file}/no-such-folder/x.jsonl`, []), NodeServices.layer))
      )
      assert(error._tag === "ModelError")
      assert.include(error.message, "can't be written; does its folder exist?")
      const fs = yield* FileSystem.FileSystem
      const full = yield* Effect.gen(function* () {
        yield* fs.remove(file)
        yield* fs.makeDirectory(file)
        return yield* Effect.flip(ask())
      }).pipe(Effect.provide(recordWith(file, ["lost"])))
      assert(full._tag === "ModelError")
      assert.include(full.message, `a turn could not be recorded to ${file}`)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  describe("replay", () => {
    it.effect("says that there is no file, or which line is not one of a cassette", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        const fs = yield* FileSystem.FileSystem
        const build = Effect.flip(Effect.provide(Effect.void, Cassette.replay(file)))
        assert.include((yield* build).message, `${file} can't be read; record it first with Cassette.record`)
        yield* fs.writeFileString(file, "")
        assert.include((yield* build).message, "no line that describes the model")
        yield* Effect.provide(ask(), recordWith(file, ["yes"]))
        yield* fs.writeFileString(file, `${yield* fs.readFileString(file)}{"type":"turn"}\n`)
        const lines = (yield* fs.readFileString(file)).split("\n").length - 1
        assert.include((yield* build).message, `${file} is not a cassette: line ${lines} is not one`)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  })

  describe("auto", () => {
    const auto = (file: string, turns: ReadonlyArray<TestChatModel.Turn>) =>
      Layer.provide(Cassette.auto(file), TestChatModel.script(turns))

    it.effect("records missing requests, and needs no session otherwise", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        const [one, two] = [ask(), ask({ systemPrompt: "Else." })]
        assert.strictEqual(yield* Effect.provide(one, auto(file, ["one"])), "one")
        const both = Effect.all([one, two])
        assert.deepStrictEqual(yield* Effect.provide(both, auto(file, ["two"])), ["one", "two"])
        const replayed = yield* Effect.provide(both, Layer.provide(Cassette.auto(file), noModel))
        assert.deepStrictEqual(replayed, ["one", "two"])
        assert.deepStrictEqual(yield* Effect.provide(both, Cassette.replay(file)), ["one", "two"])
      }).pipe(Effect.provide(NodeServices.layer))
    )

    it.effect("asks again after the session could not be made", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        let made = 0
        const flaky = Layer.effect(
          ChatModel.ChatModel,
          Effect.map(ChatModel.ChatModel, (model) => ({
            ...model,
            makeSession: Effect.suspend(() =>
              ++made === 1
                ? Effect.fail(new ModelError.ModelError({ provider: "test", reason: { _tag: "Transport" } }))
                : model.makeSession
            )
          }))
        )
        yield* Effect.gen(function* () {
          const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
          const turn = Stream.runCollect(session.nextTurn(request()))
          assert.strictEqual((yield* Effect.flip(turn)).reason._tag, "Transport")
          assert.lengthOf(yield* turn, 2)
          assert.lengthOf(yield* turn, 2)
          assert.strictEqual(made, 2)
        }).pipe(
          Effect.scoped,
          Effect.provide(Layer.provide(Cassette.auto(file), Layer.provide(flaky, TestChatModel.script(["one", "two"]))))
        )
      }).pipe(Effect.provide(NodeServices.layer))
    )

    it.effect("goes on after an append that did not finish", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        const fs = yield* FileSystem.FileSystem
        yield* Effect.provide(ask(), auto(file, ["ä one"]))
        yield* fs.writeFileString(file, `{"type":"turn","key":"abc`, { flag: "a" })
        assert.strictEqual(yield* Effect.provide(ask(), Cassette.replay(file)), "ä one")
        yield* Effect.provide(ask({ systemPrompt: "Else." }), auto(file, ["two"]))
        assert.strictEqual(yield* Effect.provide(ask({ systemPrompt: "Else." }), Cassette.replay(file)), "two")
        yield* fs.writeFileString(file, `{"type":"mod`)
        assert.strictEqual(yield* Effect.provide(ask(), auto(file, ["new"])), "new")
      }).pipe(Effect.provide(NodeServices.layer))
    )

    it.effect("does not mix models", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        yield* Effect.provide(ask(), auto(file, ["one"]))
        const other = Layer.provide(Cassette.auto(file), TestChatModel.script([], { provider: "acme", modelId: "m-1" }))
        const error = yield* Effect.flip(Effect.provide(ask(), other))
        assert.include(error.message, `${file} is of test/scripted, not of acme/m-1`)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  })

  describe("secrets", () => {
    const canary = "cAnArY42cAnArY42cAnArY42"

    it.effect("are not in the file, and a replay with other ones is the same", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        const agentWith = (secret: string) => {
          const tell = Tool.make("tell", {
            description: `Uses Authorization: Bearer ${secret}`,
            parameters: { note: Schema.String, password: Schema.String },
            execute: () =>
              Effect.succeed(
                ToolOutput.make(`https://user:${secret}@example.com/ {"api_key":"${secret}"} ghp_${secret}`)
              )
          })
          return Agent.make({
            name: "leaky",
            prompt: `The key is sk-ant-${secret}.`,
            tools: [tell],
            parameters: { headers: { "x-api-key": secret }, note: `AIza${secret}123456789` }
          })
        }
        const run = (secret: string) =>
          Agent.run(agentWith(secret), `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----`)
        const live = [
          TestChatModel.calls([{ name: "tell", arguments: { note: `Bearer ${canary}`, password: canary } }], {
            text: ["Using sk-", ...canary.split(""), " now"],
            reasoning: `OPENAI_API_KEY=${canary}`,
            providerData: { secret: canary, raw: `sk-${canary}` },
            chunkSize: 3
          }),
          TestChatModel.malformed(`{"note":"xoxb-${canary}`, { name: "tell", problem: `got sk-${canary}` }),
          TestChatModel.text(["Done: sk", `-${canary}`, "!"])
        ]
        const recorded = yield* Effect.provide(run(canary), recordWith(file, live))
        assert.include(recorded.text, canary)
        const text = yield* contents(file)
        assert.notInclude(text, canary)
        assert.notInclude(text, "cAnArY")
        assert.include(text, "[redacted]")
        const replayed = yield* Effect.provide(run(`oThEr77${canary}`), Cassette.replay(file))
        assert.strictEqual(replayed.text, "Done: [redacted]!")
        assert.strictEqual(replayed.rounds, recorded.rounds)
      }).pipe(Effect.provide(NodeServices.layer))
    )

    it.effect("redact removes a user's own secrets, and values that differ in every run", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        const redact = (text: string) => text.replaceAll(/hunter\d/g, "H").replaceAll(/\d{4}-\d\d-\d\d/g, "DATE")
        const live = recordWith(file, [TestChatModel.text(["It is hun", "ter2, ", "keep it"])], { redact })
        yield* Effect.provide(ask({ systemPrompt: "2026-11-21 hunter1" }), live)
        assert.notMatch(yield* contents(file), /hunter|2026-11/)
        const replayed = yield* Effect.provide(
          ask({ systemPrompt: "2027-01-01 hunter3" }),
          Cassette.replay(file, { redact })
        )
        assert.strictEqual(replayed, "It is H, keep it")
      }).pipe(Effect.provide(NodeServices.layer))
    )

    it.effect("in an error of a miss are redacted too", () =>
      Effect.gen(function* () {
        const file = yield* temporary
        yield* Effect.provide(ask(), recordWith(file, ["yes"]))
        const asked = ask({ systemPrompt: `Key: sk-${canary}` })
        const error = yield* Effect.flip(Effect.provide(asked, Cassette.replay(file)))
        assert.include(error.message, "now: Key: [redacted]")
        assert.notInclude(JSON.stringify(error), canary)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  })
})
