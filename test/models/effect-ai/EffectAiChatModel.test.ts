import { describe, expect, it } from "@effect/vitest"
import { Array, Deferred, Duration, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, ChatModel, Content, Message, type ModelError, Tool } from "effect-deepagents"
import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
import { AiError, Model, type Response, Tool as AiTool } from "effect/ai"
import { request } from "../openai/asking.ts"
import { type Answer, call, finish, type Part, type Provider, reasoning, requests, script, text } from "./provider.ts"

const hello = request([Message.human("Hello")])

const add = Tool.make("add", {
  description: "Adds",
  parameters: { left: Schema.Finite, right: Schema.Finite },
  execute: ({ left, right }) => Effect.succeed(String(left + right))
})

const withTools = { ...hello, tools: [add] }

const provided = (...answers: ReadonlyArray<Answer>) => Layer.provideMerge(EffectAiChatModel.layer(), script(answers))

const ask = (asked: ChatModel.ModelRequest = hello) =>
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      return yield* Stream.runCollect(session.nextTurn(asked))
    })
  )

const messageOf = (parts: ReadonlyArray<ChatModel.TurnPart>): Message.AiMessage => {
  const last = parts.at(-1)
  expect(last?._tag).toBe("TurnDone")
  return (last as Extract<ChatModel.TurnPart, { _tag: "TurnDone" }>).message
}

const turn = (asked?: ChatModel.ModelRequest) => Effect.map(ask(asked), messageOf)

/** The parts until it failed, and the failure. */
const failed = (asked?: ChatModel.ModelRequest) =>
  Effect.scoped(
    Effect.gen(function* () {
      const seen: Array<ChatModel.TurnPart> = []
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      const error = yield* session.nextTurn(asked ?? hello).pipe(
        Stream.runForEach((part) => Effect.sync(() => seen.push(part))),
        Effect.flip
      )
      return { seen, error }
    })
  )

const failing = (reason: AiError.AiErrorReason, after: ReadonlyArray<Part> = []): Answer =>
  Stream.concat(Stream.fromIterable(after), Stream.fail(AiError.make({ module: "Test", method: "streamText", reason })))

describe("a turn", () => {
  it.effect("is streamed as it comes, and whole at its end", () =>
    Effect.gen(function* () {
      const parts = yield* ask()
      expect(parts.slice(0, -1)).toEqual([
        { _tag: "ReasoningDelta", text: "Let me " },
        { _tag: "ReasoningDelta", text: "think" },
        { _tag: "TextDelta", text: "Hel" },
        { _tag: "TextDelta", text: "lo 👋" }
      ])
      const message = messageOf(parts)
      expect(message.content).toEqual([
        { type: "reasoning", text: "Let me think", providerData: { "effect-ai": { test: { signature: "s1" } } } },
        { type: "text", text: "Hello 👋" }
      ])
      expect(message.stopReason).toBe("stop")
      expect(message.model).toBe("claude-x")
      expect(message.usage).toEqual({
        inputTokens: 30,
        outputTokens: 12,
        cacheReadTokens: 20,
        cacheWriteTokens: 5,
        reasoningTokens: 7
      })
      expect(message.providerData).toEqual({
        "effect-ai": {
          response: { id: "resp-1", finishReason: "stop", finish: { test: { tier: "priority" } } }
        }
      })
    }).pipe(
      Effect.provide(
        provided([
          { type: "response-metadata", id: "resp-1", modelId: "claude-x" },
          ...reasoning(["Let me ", "think"], { test: { signature: "s1" } }),
          ...text("Hel", "lo 👋"),
          finish("stop", {
            metadata: { test: { tier: "priority" } },
            usage: {
              inputTokens: { total: 30, uncached: 5, cacheRead: 20, cacheWrite: 5 },
              outputTokens: { total: 12, reasoning: 7 }
            }
          })
        ])
      )
    )
  )

  it.effect("has no usage when the provider counted nothing", () =>
    Effect.gen(function* () {
      expect(yield* turn()).not.toHaveProperty("usage")
    }).pipe(Effect.provide(provided([...text("Hi"), finish()])))
  )

  it.effect("keeps interleaved blocks apart", () =>
    Effect.gen(function* () {
      expect((yield* turn()).content).toEqual([Content.text("ac"), Content.text("b")])
    }).pipe(
      Effect.provide(
        provided([
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "a" },
          { type: "text-start", id: "2" },
          { type: "text-delta", id: "2", delta: "b" },
          { type: "text-delta", id: "1", delta: "c" },
          { type: "text-end", id: "2" },
          { type: "text-end", id: "1" },
          finish()
        ])
      )
    )
  )

  it.effect("keeps files that the model made, and its sources", () =>
    Effect.gen(function* () {
      const message = yield* turn()
      expect(message.content).toEqual([Content.image({ base64: "AQID", mimeType: "image/png" })])
      expect(message.providerData?.["effect-ai"]).toMatchObject({
        sources: [{ type: "url", id: "u", title: "T", url: "https://example.com/" }]
      })
    }).pipe(
      Effect.provide(
        provided([
          { type: "file", mediaType: "image/png", data: "AQID" },
          { type: "source", sourceType: "url", id: "u", title: "T", url: "https://example.com/" },
          finish()
        ])
      )
    )
  )

  const reasons: ReadonlyArray<readonly [Response.FinishReason, Message.TurnStop]> = [
    ["stop", "stop"],
    ["length", "length"],
    ["content-filter", "contentFilter"],
    ["pause", "pause"],
    ["other", "stop"],
    ["unknown", "stop"]
  ]
  it.effect.each(reasons)("that finished with %s stopped with %s", ([reason, stop]) =>
    Effect.gen(function* () {
      expect((yield* turn()).stopReason).toBe(stop)
    }).pipe(Effect.provide(provided([...text("x"), finish(reason)])))
  )

  it.effect("that the provider marks as a refusal is one", () =>
    Effect.gen(function* () {
      expect((yield* turn()).stopReason).toBe("refusal")
    }).pipe(
      Effect.provide(
        provided([
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "No.", metadata: { openai: { refusal: "No." } } },
          { type: "text-end", id: "t" },
          finish()
        ])
      )
    )
  )
})

describe("tool calls", () => {
  it.effect("come with their pieces, in order, in parallel", () =>
    Effect.gen(function* () {
      const parts = yield* ask(withTools)
      expect(parts.slice(0, -1)).toEqual([
        { _tag: "ToolCallStart", id: "1", name: "add" },
        { _tag: "ToolCallDelta", id: "1", delta: `{"left":1,` },
        { _tag: "ToolCallStart", id: "2", name: "add" },
        { _tag: "ToolCallDelta", id: "1", delta: `"right":2}` },
        { _tag: "ToolCallDelta", id: "2", delta: `{}` },
        { _tag: "ToolCallStart", id: "3", name: "add" },
        { _tag: "ToolCallDelta", id: "3", delta: `{"left":3}` }
      ])
      const message = messageOf(parts)
      expect(message.toolCalls).toEqual([
        { id: "1", name: "add", arguments: { left: 1, right: 2 } },
        { id: "2", name: "add", arguments: {} },
        { id: "3", name: "add", arguments: { left: 3 }, providerData: { "effect-ai": { test: { item: "i3" } } } }
      ])
      expect(message.stopReason).toBe("toolCalls")
    }).pipe(
      Effect.provide(
        provided([
          { type: "tool-params-start", id: "1", name: "add" },
          { type: "tool-params-delta", id: "1", delta: `{"left":1,` },
          { type: "tool-params-start", id: "2", name: "add" },
          { type: "tool-params-delta", id: "1", delta: `"right":2}` },
          { type: "tool-params-end", id: "1" },
          { type: "tool-call", id: "1", name: "add", params: { left: 1, right: 2 } },
          { type: "tool-params-delta", id: "2", delta: `{}` },
          { type: "tool-params-end", id: "2" },
          { type: "tool-call", id: "2", name: "add", params: {} },
          { type: "tool-call", id: "3", name: "add", params: { left: 3 }, metadata: { test: { item: "i3" } } },
          finish("tool-calls")
        ])
      )
    )
  )

  it.effect("are each a single one, however often their beginning, their end or their arguments are said", () =>
    Effect.gen(function* () {
      const { toolCalls } = yield* turn(withTools)
      expect(toolCalls.map(({ arguments: args, id, name }) => [id, name, args])).toEqual([
        ["1", "add", { left: 1, right: 2 }],
        ["2", "add", { left: 2 }]
      ])
    }).pipe(
      Effect.provide(
        provided([
          { type: "tool-params-start", id: "1", name: "add" },
          { type: "tool-params-delta", id: "1", delta: `{"left":1,` },
          { type: "tool-params-start", id: "1", name: "add" },
          { type: "tool-params-delta", id: "1", delta: `"right":2}` },
          { type: "tool-params-end", id: "1" },
          { type: "tool-call", id: "1", name: "add", params: { left: 1, right: 2 } },
          { type: "tool-call", id: "1", name: "add", params: { left: 1, right: 2 } },
          { type: "tool-call", id: "2", name: "add", params: { left: 2 } },
          { type: "tool-params-delta", id: "2", delta: `{"left":3}` },
          finish("tool-calls")
        ])
      )
    )
  )

  it.effect("of the provider are known by their end, and kept once", () =>
    Effect.gen(function* () {
      const { providerData, toolCalls } = yield* turn(withTools)
      expect(toolCalls).toEqual([])
      expect(JSON.stringify(providerData).match(/tool-call/g)).toHaveLength(1)
    }).pipe(
      Effect.provide(
        provided([
          { type: "tool-params-start", id: "1", name: "search" },
          { type: "tool-params-delta", id: "1", delta: `{}` },
          { type: "tool-params-end", id: "1" },
          { type: "tool-call", id: "1", name: "search", params: {}, providerExecuted: true },
          { type: "tool-call", id: "1", name: "search", params: {}, providerExecuted: true },
          ...text("Found."),
          finish("stop")
        ])
      )
    )
  )

  it.effect("of undeclared tools and with wrong arguments reach the loop as they are", () =>
    Effect.gen(function* () {
      const message = yield* turn(withTools)
      expect(message.toolCalls).toEqual([
        { id: "1", name: "subtract", arguments: { x: 1 } },
        { id: "2", name: "add", arguments: { left: "one" } }
      ])
    }).pipe(
      Effect.provide(
        provided([...call("1", "subtract", { x: 1 }), ...call("2", "add", { left: "one" }), finish("tool-calls")])
      )
    )
  )

  it.effect("invariant 13: arguments that are no object are kept raw, and the rest of the turn with them", () =>
    Effect.gen(function* () {
      const message = yield* turn(withTools)
      expect(message.malformedToolCalls).toMatchObject([
        { id: "1", name: "add", raw: `{"left": 1,` },
        { id: "2", name: "add", raw: `[1,2]` }
      ])
      expect(message.toolCalls).toEqual([
        { id: "3", name: "add", arguments: {} },
        { id: "4", name: "add", arguments: { left: 4 } }
      ])
    }).pipe(
      Effect.provide(
        provided([
          { type: "tool-call", id: "1", name: "add", params: `{"left": 1,` },
          { type: "tool-call", id: "2", name: "add", params: [1, 2] },
          { type: "tool-call", id: "3", name: "add", params: undefined },
          { type: "tool-params-start", id: "4", name: "add" },
          { type: "tool-params-delta", id: "4", delta: `{"left":4}` },
          finish("tool-calls")
        ])
      )
    )
  )

  it.effect("invariant 6: a call that the output limit cut is malformed", () =>
    Effect.gen(function* () {
      const message = yield* turn(withTools)
      expect(message.stopReason).toBe("length")
      expect(message.malformedToolCalls).toEqual([
        {
          id: "1",
          name: "add",
          raw: `{"left":`,
          problem: "the arguments were cut off after 8 characters: the answer reached its length limit"
        }
      ])
    }).pipe(
      Effect.provide(
        provided([
          { type: "tool-params-start", id: "1", name: "add" },
          { type: "tool-params-delta", id: "1", delta: `{"left":` },
          finish("length")
        ])
      )
    )
  )

  const rejection = new AiError.ToolParameterValidationError({ toolName: "add", description: "Expected a number" })

  it.effect("with a failure of the provider become malformed, and earlier parts are kept", () =>
    Effect.gen(function* () {
      const message = yield* turn(withTools)
      expect(Message.text(message)).toBe("Adding")
      expect(message.toolCalls).toEqual([{ id: "1", name: "add", arguments: { left: 1 } }])
      expect(message.malformedToolCalls).toMatchObject([{ id: "2", name: "add", raw: `{"left": oops}` }])
      expect(message.stopReason).toBe("toolCalls")
    }).pipe(
      Effect.provide(
        provided(
          failing(rejection, [
            ...text("Adding"),
            ...call("1", "add", { left: 1 }),
            { type: "tool-params-start", id: "2", name: "add" },
            { type: "tool-params-delta", id: "2", delta: `{"left": ` },
            { type: "tool-params-delta", id: "2", delta: `oops}` }
          ])
        )
      )
    )
  )

  it.effect("that the provider fails on without having streamed them are malformed too", () =>
    Effect.gen(function* () {
      const message = yield* turn(withTools)
      expect(message.malformedToolCalls).toMatchObject([{ name: "add", raw: "" }])
      expect(message.malformedToolCalls[0]?.problem).toContain("Expected a number")
      expect(message.malformedToolCalls[0]?.id).not.toBe("")
    }).pipe(Effect.provide(provided(failing(rejection))))
  )

  it.effect("that the provider's JSON parser throws on become malformed; another defect stays one", () =>
    Effect.gen(function* () {
      const message = yield* turn(withTools)
      expect(message.malformedToolCalls).toMatchObject([{ id: "1", raw: `{"left":` }])
      expect(yield* Effect.sandbox(turn()).pipe(Effect.flip)).toMatchObject({
        reasons: [{ _tag: "Die", defect: "broken" }]
      })
    }).pipe(
      Effect.provide(
        provided(
          Stream.concat(
            Stream.fromIterable<Part>([
              { type: "tool-params-start", id: "1", name: "add" },
              { type: "tool-params-delta", id: "1", delta: `{"left":` }
            ]),
            Stream.die(new SyntaxError("Unexpected end of JSON input"))
          ),
          Stream.die("broken")
        )
      )
    )
  )

  it.effect("run an agent's tools: unknown, undecodable, malformed and good ones", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "adder", prompt: "Add.", tools: [add] })
      const result = yield* Agent.run(agent, "1 + 2")
      expect(result.text).toBe("3")
      const answers = result.messages.filter((message) => message.role === "tool")
      expect(answers.map((answer) => [answer.toolCallId, answer.isError])).toEqual([
        ["a", true],
        ["b", true],
        ["c", false],
        ["d", true]
      ])
      const [, second] = yield* requests
      expect(second?.prompt.content.map((message) => message.role)).toEqual(["system", "user", "assistant", "tool"])
      expect(second?.prompt.content[2]?.content).toMatchObject([
        { type: "tool-call", id: "a", name: "nothing" },
        { type: "tool-call", id: "b", params: { left: "?" } },
        { type: "tool-call", id: "c", params: { left: 1, right: 2 } },
        { type: "tool-call", id: "d", params: { INVALID_JSON: "oops" } }
      ])
      expect(second?.prompt.content[3]?.content).toMatchObject([
        { type: "tool-result", id: "a", isFailure: true },
        { type: "tool-result", id: "b", isFailure: true },
        { type: "tool-result", id: "c", isFailure: false, result: "3", modelOutput: [{ type: "text", text: "3" }] },
        { type: "tool-result", id: "d", isFailure: true }
      ])
    }).pipe(
      Effect.provide(
        provided(
          [
            ...call("a", "nothing", {}),
            ...call("b", "add", { left: "?" }),
            ...call("c", "add", { left: 1, right: 2 }),
            { type: "tool-call", id: "d", name: "add", params: "oops" },
            finish("tool-calls")
          ],
          [...text("3"), finish()]
        )
      )
    )
  )
})

describe("a request", () => {
  it.effect("carries instructions, tools and the tool choice, and has no call resolved", () =>
    Effect.gen(function* () {
      yield* turn({ ...withTools, systemPrompt: "Be brief.", toolChoice: { tool: "add" } })
      const [seen] = yield* requests
      expect(seen?.prompt.content).toMatchObject([
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Hello" }] }
      ])
      expect(seen?.tools).toMatchObject([{ name: "add", description: "Adds" }])
      expect(AiTool.getJsonSchema(seen!.tools[0]!)).toEqual(add.parameters)
      expect(AiTool.getStrictMode(seen!.tools[0]!)).toBe(false)
      expect(seen?.toolChoice).toEqual({ tool: "add" })
      expect(seen?.toolCallValidation).toBe("deferred")
    }).pipe(Effect.provide(provided([finish()])))
  )

  it.effect("sends images and files as providers take them", () =>
    Effect.gen(function* () {
      yield* turn(
        request([
          Message.human([
            Content.image({ url: "https://example.com/cat.png" }),
            Content.image({ base64: "AQID", mimeType: "image/png" }),
            Content.image({ url: "data:image/gif;base64,AQID" }),
            Content.file({ fileId: "file-1", name: "notes.txt" }),
            Content.image({ base64: "no base64", mimeType: "image/png" })
          ])
        ])
      )
      const [seen] = yield* requests
      expect(seen?.prompt.content[0]?.content).toMatchObject([
        { type: "file", mediaType: "image/*", data: new URL("https://example.com/cat.png") },
        { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) },
        { type: "file", mediaType: "image/gif", data: new Uint8Array([1, 2, 3]) },
        { type: "file", mediaType: "text/plain", fileName: "notes.txt", data: "file-1" },
        { type: "text" }
      ])
    }).pipe(Effect.provide(provided([finish()])))
  )

  it.effect("replays reasoning with its signature, and the provider's own calls, in their order", () =>
    Effect.gen(function* () {
      const first = yield* turn(withTools)
      // It survives the encoding that sessions keep.
      const stored = yield* Message.decode(JSON.parse(JSON.stringify(Message.encode(first))))
      expect(stored).toEqual(first)
      yield* turn({
        ...withTools,
        messages: [
          Message.human("Hello"),
          stored,
          Message.tool("2", { toolCallId: "c1", toolName: "add" }),
          Message.tool("4", { toolCallId: "c2", toolName: "add" })
        ]
      })
      const [, second] = yield* requests
      expect(second?.prompt.content[1]?.content).toMatchObject([
        { type: "reasoning", text: "one", options: { test: { id: "rs_1" } } },
        { type: "tool-call", id: "c1", options: { test: { id: "fc_1" } } },
        { type: "tool-call", id: "s", name: "Search", providerExecuted: true, params: { query: "x" } },
        { type: "tool-result", id: "s", name: "Search", providerExecuted: true, result: { hits: 1 }, isFailure: false },
        { type: "reasoning", text: "", options: { test: { id: "rs_2" } } },
        { type: "tool-call", id: "c2" },
        { type: "text", text: "and so" }
      ])
      expect(first.toolCalls.map(({ id }) => id)).toEqual(["c1", "c2"])
    }).pipe(
      Effect.provide(
        EffectAiChatModel.layer({
          hostedTools: [
            AiTool.providerDefined({
              id: "x.search",
              customName: "Search",
              providerName: "search",
              parameters: Schema.Struct({ query: Schema.String }),
              success: Schema.Struct({ hits: Schema.Finite })
            })()
          ]
        })
      ),
      Effect.provide(
        script([
          [
            ...reasoning(["one"], { test: { id: "rs_1" } }, "r1"),
            { type: "tool-call", id: "c1", name: "add", params: {}, metadata: { test: { id: "fc_1" } } },
            { type: "tool-params-start", id: "s", name: "Search", providerExecuted: true },
            { type: "tool-params-delta", id: "s", delta: `{"query":"x"}` },
            { type: "tool-call", id: "s", name: "Search", params: { query: "x" }, providerExecuted: true },
            {
              type: "tool-result",
              id: "s",
              name: "Search",
              result: { hits: 1 },
              isFailure: false,
              providerExecuted: true
            },
            ...reasoning([], { test: { id: "rs_2" } }, "r2"),
            { type: "tool-call", id: "c2", name: "add", params: {} },
            ...text("and so"),
            finish("tool-calls")
          ],
          [finish()]
        ])
      )
    )
  )

  it.effect("says of a call that the provider runs that it had its effect", () =>
    Effect.gen(function* () {
      const [start] = yield* ask()
      expect(start).toEqual({ _tag: "ToolCallStart", id: "s", name: "Search", providerExecuted: true })
    }).pipe(
      Effect.provide(
        provided([{ type: "tool-params-start", id: "s", name: "Search", providerExecuted: true }, finish()])
      )
    )
  )

  it.effect("leaves out another provider's thoughts, and answers unanswered calls", () =>
    Effect.gen(function* () {
      yield* turn(
        request([
          Message.tool("orphan", { toolCallId: "no", toolName: "x" }),
          Message.human("Hello"),
          Message.ai([Content.reasoning("secret", { anthropic: { signature: "s" } }), Content.text("Hm")], {
            toolCalls: [{ id: "1", name: "add", arguments: {} }]
          })
        ])
      )
      const [seen] = yield* requests
      expect(seen?.prompt.content).toMatchObject([
        { role: "user" },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Hm" },
            { type: "tool-call", id: "1" }
          ]
        },
        { role: "tool", content: [{ type: "tool-result", id: "1", isFailure: true }] }
      ])
      expect(JSON.stringify(seen?.prompt)).not.toContain("secret")
    }).pipe(Effect.provide(provided([finish()])))
  )

  const instructed = request([Message.human("Hello"), Message.system("Be brief."), Message.human("Well?")])

  it.effect("keeps instructions inside the history only for a provider that says it takes them", () =>
    Effect.gen(function* () {
      const roles = (layer: Layer.Layer<ChatModel.ChatModel | Provider>) =>
        Effect.gen(function* () {
          yield* turn(instructed)
          const [seen] = yield* requests
          return seen?.prompt.content.map((message) => message.role)
        }).pipe(Effect.provide(layer))
      expect(yield* roles(provided([finish()]))).not.toContain("system")
      expect(
        yield* roles(
          Layer.provideMerge(EffectAiChatModel.layer(), script([[finish()]], { supportsSystemMessagesInHistory: true }))
        )
      ).toEqual(["user", "system", "user"])
    })
  )

  it.effect("gives a message that was sent before as the same object again", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "adder", prompt: "Add.", tools: [add] })
      yield* Agent.run(agent, "1 + 2")
      const [first, second, third] = yield* requests
      expect(second?.tools[0]).toBe(first?.tools[0])
      for (const [earlier, later] of [
        [first, second],
        [second, third]
      ]) {
        const sent = earlier?.prompt.content ?? []
        expect(sent.length).toBeGreaterThan(1)
        expect(sent.map((message, index) => message === later?.prompt.content[index])).toEqual(sent.map(() => true))
      }
    }).pipe(
      Effect.provide(
        provided(
          [...call("1", "add", { left: 1, right: 2 }), finish("tool-calls")],
          [...call("2", "add", { left: 2, right: 2 }), finish("tool-calls")],
          [...text("4"), finish()]
        )
      )
    )
  )

  it.effect("says once a session that parameters are not sent", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "adder", prompt: "", tools: [add], parameters: { temperature: 0 } })
      const events = yield* Stream.runCollect(Agent.stream(agent, "1 + 2"))
      const warnings = events.filter((event) => event._tag === "Warning")
      expect(warnings).toHaveLength(1)
      expect(warnings[0]?.message).toContain("temperature")
    }).pipe(
      Effect.provide(
        provided([...call("1", "add", { left: 1, right: 2 }), finish("tool-calls")], [...text("3"), finish()])
      )
    )
  )
})

describe("a broken stream is never a success", () => {
  it.effect("when it ends before its finish", () =>
    Effect.gen(function* () {
      const { error, seen } = yield* failed()
      expect(seen).toEqual([{ _tag: "TextDelta", text: "Hel" }])
      expect(error).toMatchObject({ _tag: "ModelError", reason: { _tag: "BadResponse" } })
    }).pipe(Effect.provide(provided(text("Hel"))))
  )

  it.effect("when the provider sends an error in its middle: earlier parts were seen", () =>
    Effect.gen(function* () {
      const { error, seen } = yield* failed()
      expect(seen).toEqual([{ _tag: "TextDelta", text: "Hel" }])
      expect(error).toMatchObject({ reason: { _tag: "Overloaded" }, isRetryable: true })
      expect(error.message).toContain("Overloaded")
      expect((yield* failed()).error.reason._tag).toBe("RateLimited")
      expect((yield* failed()).error.reason).toEqual({ _tag: "ContextOverflow", limit: 1000, used: 1200 })
      expect((yield* failed()).error.reason._tag).toBe("BadResponse")
      expect((yield* failed()).error.reason._tag).toBe("BadResponse")
    }).pipe(
      Effect.provide(
        provided(
          [
            ...text("Hel"),
            { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
            ...text("lo")
          ],
          [{ type: "error", error: { type: "error", code: "rate_limit_exceeded", message: "slow down" } }],
          [
            {
              type: "error",
              error: { type: "invalid_request_error", message: "prompt is too long: 1200 tokens > 1000 maximum" }
            }
          ],
          [{ type: "error", error: 42 }],
          [...text("x"), finish("error")]
        )
      )
    )
  )

  it.effect("when it sends parts that effect/ai can't decode", () =>
    Effect.gen(function* () {
      const { error } = yield* failed()
      expect(error.reason._tag).toBe("BadResponse")
    }).pipe(
      // A provider is code of somebody else: it can stream anything.
      Effect.provide(provided([{ type: "text-delta", id: 1, delta: null } as unknown as Part, finish()]))
    )
  )

  const http = (status: number, headers: Record<string, string> = {}) => ({ http: { response: { status, headers } } })
  const network = { method: "POST", url: "https://example.com/v1?key=canary" }
  const reasons: ReadonlyArray<readonly [AiError.AiErrorReason, ModelError.Reason]> = [
    [
      new AiError.RateLimitError({ retryAfter: Duration.seconds(3) }),
      { _tag: "RateLimited", retryAfter: Duration.seconds(3) }
    ],
    [
      new AiError.RateLimitError(http(429, { "Retry-After-Ms": "1500" })),
      { _tag: "RateLimited", retryAfter: Duration.millis(1500) }
    ],
    [new AiError.RateLimitError({}), { _tag: "RateLimited" }],
    [new AiError.QuotaExhaustedError({}), { _tag: "QuotaExhausted" }],
    [new AiError.AuthenticationError({ kind: "InvalidKey" }), { _tag: "Authentication" }],
    [new AiError.AuthenticationError({ kind: "InsufficientPermissions" }), { _tag: "Permission" }],
    [new AiError.ContentPolicyError({ description: "no" }), { _tag: "ContentFiltered" }],
    [new AiError.InvalidRequestError({ description: "bad" }), { _tag: "InvalidRequest" }],
    [
      new AiError.InvalidRequestError({
        description:
          "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
      }),
      { _tag: "ContextOverflow", limit: 8192, used: 9000 }
    ],
    [
      new AiError.InvalidRequestError({ http: { body: `{"error":{"code":"context_length_exceeded"}}` } }),
      { _tag: "ContextOverflow" }
    ],
    [
      new AiError.InternalProviderError({ description: "boom", ...http(529, { "retry-after": "2" }) }),
      { _tag: "Overloaded", retryAfter: Duration.seconds(2) }
    ],
    [new AiError.InternalProviderError({ description: "boom", ...http(504) }), { _tag: "Timeout" }],
    [new AiError.NetworkError({ reason: "TransportError", ...network }), { _tag: "Transport" }],
    [new AiError.NetworkError({ reason: "TransportError", description: "timed out", ...network }), { _tag: "Timeout" }],
    [new AiError.NetworkError({ reason: "InvalidUrlError", ...network }), { _tag: "InvalidRequest" }],
    [new AiError.InvalidOutputError({ description: "x" }), { _tag: "BadResponse" }],
    [new AiError.InvalidResponseError({ description: "x" }), { _tag: "BadResponse" }],
    [new AiError.UnsupportedSchemaError({ description: "x" }), { _tag: "Unsupported" }],
    [new AiError.InvalidUserInputError({ description: "x" }), { _tag: "InvalidRequest" }],
    [new AiError.UnknownError({ ...http(404) }), { _tag: "InvalidRequest" }],
    [new AiError.UnknownError({}), { _tag: "Unknown" }]
  ]
  it.effect.each(reasons.map(([reason, expected]) => [reason._tag, expected._tag, reason, expected] as const))(
    "%s is %s",
    ([, , reason, expected]) =>
      Effect.gen(function* () {
        const { error, seen } = yield* failed()
        expect(seen).toEqual([{ _tag: "TextDelta", text: "Hel" }])
        expect(error.reason).toEqual(expected)
        expect(`${error.message} ${JSON.stringify(error)}`).not.toContain("canary")
      }).pipe(Effect.provide(provided(failing(reason, text("Hel")))))
  )

  it.effect("tells status and request id", () =>
    Effect.gen(function* () {
      const { error } = yield* failed()
      expect(error).toMatchObject({ provider: "effect-ai", status: 500, requestId: "req-1", detail: "boom" })
    }).pipe(
      Effect.provide(
        provided(
          failing(new AiError.InternalProviderError({ description: "boom", ...http(500, { "request-id": "req-1" }) }))
        )
      )
    )
  )
})

it.effect("invariant 9: leaving the turn interrupts the provider's stream", () =>
  Effect.gen(function* () {
    const started = yield* Deferred.make<void>()
    const closed = yield* Deferred.make<void>()
    const answer: Answer = Stream.concat(Stream.fromIterable(text("Hel")), Stream.never).pipe(
      Stream.tap(() => Deferred.succeed(started, undefined)),
      Stream.ensuring(Deferred.succeed(closed, undefined))
    )
    const fiber = yield* Effect.forkChild(ask().pipe(Effect.provide(provided(answer))))
    yield* Deferred.await(started)
    expect(yield* Deferred.isDone(closed)).toBe(false)
    yield* Fiber.interrupt(fiber)
    expect(yield* Deferred.isDone(closed)).toBe(true)
  })
)

it.effect("has the facts of the effect/ai Model, unless told otherwise", () =>
  Effect.gen(function* () {
    const layer = Model.make("acme", "acme-1", script([]))
    const described = yield* Effect.provide(ChatModel.ChatModel, EffectAiChatModel.layer().pipe(Layer.provide(layer)))
    expect(described).toMatchObject({ provider: "acme", modelId: "acme-1", supportsVision: true })
    const told = yield* Effect.provide(
      ChatModel.ChatModel,
      EffectAiChatModel.layer({ modelId: "m", supportsVision: false, contextWindowTokens: 5 }).pipe(
        Layer.provide(layer)
      )
    )
    expect(told).toMatchObject({ modelId: "m", supportsVision: false, contextWindowTokens: 5 })
  })
)

it.effect("a structured answer is had by a tool", () =>
  Effect.gen(function* () {
    const agent = Agent.make({ name: "pricer", prompt: "", output: Schema.Struct({ euros: Schema.Finite }) })
    const result = yield* Agent.run(agent, "How much?")
    expect(result.output).toEqual({ euros: 3 })
  }).pipe(
    Effect.provide(
      provided(
        [...call("1", "final_answer", { euros: "three" }), finish("tool-calls")],
        [...call("2", "final_answer", { euros: 3 }), finish("tool-calls")]
      )
    )
  )
)

it.effect("ten thousand deltas in one array are one array", () =>
  Effect.gen(function* () {
    const session = yield* (yield* ChatModel.ChatModel).makeSession
    const sizes: Array<number> = []
    yield* Stream.runForEachArray(session.nextTurn(hello), (parts) => Effect.sync(() => sizes.push(parts.length)))
    expect(sizes[0]).toBeGreaterThan(1000)
  }).pipe(Effect.scoped, Effect.provide(provided([...text(...Array.makeBy(10_000, String)), finish()])))
)
