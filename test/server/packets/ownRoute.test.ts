/** A route of an application's own answers `useChat` as the server does: refusals, requests of sub-agents, repeated answers. */
import { assert, describe, it } from "@effect/vitest"
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop, Subagents } from "effect-deepagents/middleware"
import { AiSdk } from "effect-deepagents/server"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const paid: Array<number> = []
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.sync(() => (paid.push(n), `paid ${n}`))
})
const gate = HumanInTheLoop.make({ tools: { pay: true } })
const clerk = Agent.make({ name: "clerk", description: "Pays", prompt: "You pay.", tools: [pay], middleware: [gate] })
const alone = Agent.make({ name: "alone", prompt: "You help.", tools: [pay], middleware: [gate] })
const boss = Agent.make({ name: "boss", prompt: "You lead.", middleware: [Subagents.make({ agents: [clerk] }), gate] })

const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
  const last = messages.at(-1)
  if (last === undefined || last.role === "tool") return `done ${messages.length}`
  if (!Message.text(last).includes("pay")) return `answer ${messages.length}`
  return systemPrompt.includes("You lead")
    ? TestChatModel.calls([{ name: "task", arguments: { description: "pay", subagent_type: "clerk" } }])
    : TestChatModel.calls([{ name: "pay", arguments: { n: 7 } }])
})

const threads = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))

/** Answers as a route does, and reads the answer as the client does, on top of the message that it has. */
const post = Effect.fnUntraced(function* (agent: typeof alone, messages: ReadonlyArray<UIMessage>, trigger?: string) {
  const asked = yield* AiSdk.decode({ id: "t", messages, ...(trigger === undefined ? {} : { trigger }) })
  const { input, told } = yield* AiSdk.prepareRun(asked)
  const packets = yield* Agent.stream(agent, input, { threadId: "t" }).pipe(
    AiSdk.encode({ messageId: asked.messageId, told }),
    Stream.runCollect
  )
  const before = messages.at(-1)
  return yield* Effect.promise(async () => {
    const chunks: ReadonlyArray<UIMessageChunk> = structuredClone([...packets])
    const options = before?.role === "assistant" ? { message: structuredClone(before) } : {}
    const errors: Array<unknown> = []
    let last: UIMessage | undefined
    const stream = Stream.toReadableStream(Stream.fromIterable(chunks))
    for await (const next of readUIMessageStream({ stream, ...options, onError: (error) => errors.push(error) }))
      last = next
    assert.deepStrictEqual(errors, [])
    return last ?? assert.fail("there is no message")
  })
})

const makeMessage = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] })

const toolsOf = (message: UIMessage) =>
  message.parts.flatMap((part) => (part.type === "dynamic-tool" ? [`${part.toolName} ${part.state}`] : []))

/** Answers all requests of a message, as `useChat` does. */
const decide = (message: UIMessage, approved: boolean): UIMessage => ({
  ...message,
  parts: message.parts.map((part) =>
    part.type === "dynamic-tool" && part.state === "approval-requested"
      ? { ...part, state: "approval-responded" as const, approval: { id: part.approval.id, approved } }
      : part
  )
})

describe("a route of one's own", () => {
  it.effect("shows a refusal as refused, and a request of a sub-agent as answered", () =>
    Effect.gen(function* () {
      paid.length = 0
      const human = makeMessage("1", "pay")
      const asked = yield* post(alone, [human])
      assert.deepStrictEqual(toolsOf(asked), ["pay approval-requested"])
      const refused = yield* post(alone, [human, decide(asked, false)])
      assert.deepStrictEqual(toolsOf(refused), ["pay output-denied"])
      assert.deepStrictEqual(paid, [])
    }).pipe(Effect.provide([model, threads]))
  )

  it.effect("shows a request of a sub-agent as answered, and goes on with it", () =>
    Effect.gen(function* () {
      paid.length = 0
      const human = makeMessage("1", "pay")
      const asked = yield* post(boss, [human])
      assert.include(toolsOf(asked), "pay approval-requested")
      const done = yield* post(boss, [human, decide(asked, true)])
      assert.deepStrictEqual(
        toolsOf(done).filter((one) => one.startsWith("pay")),
        ["pay output-available"]
      )
      assert.deepStrictEqual(paid, [7])
      const late = yield* Effect.flip(
        AiSdk.prepareRun(yield* AiSdk.decode({ id: "t", messages: [decide(asked, true)] }))
      )
      assert.deepInclude(late, { _tag: "RunsError", reason: "Conflict" })
    }).pipe(Effect.provide([model, threads]))
  )

  it.effect("gives another answer in place of the earlier one, which stays as a branch", () =>
    Effect.gen(function* () {
      const textOf = ({ parts }: UIMessage) => parts.flatMap((part) => (part.type === "text" ? [part.text] : []))
      const one = makeMessage("1", "one")
      const two = makeMessage("2", "two")
      yield* post(alone, [one])
      assert.deepStrictEqual(textOf(yield* post(alone, [two])), ["answer 3"])
      assert.deepStrictEqual(textOf(yield* post(alone, [two], "regenerate-message")), ["answer 3"])
      const { messages = [] } = (yield* SessionStore.checkpoint("t")) ?? {}
      assert.deepStrictEqual(messages.map(Message.text), ["one", "answer 1", "two", "answer 3"])
      yield* post(alone, [one], "regenerate-message")
      assert.lengthOf((yield* SessionStore.checkpoint("t"))?.messages ?? [], 2)
      // A message that the thread does not have is answered as a new one.
      assert.deepStrictEqual(textOf(yield* post(alone, [makeMessage("3", "three")], "regenerate-message")), [
        "answer 3"
      ])
    }).pipe(Effect.provide([model, threads]))
  )
})

describe("messages that an application stored", () => {
  const stored = [
    { id: "1", role: "system", parts: [{ type: "text", text: "Be kind." }] },
    makeMessage("2", "How warm is it?"),
    {
      id: "3",
      role: "assistant",
      metadata: { model: "x" },
      parts: [
        { type: "step-start" },
        { type: "reasoning", text: "I look." },
        { type: "tool-weather", toolCallId: "a", state: "output-available", input: { city: "Oslo" }, output: { c: 3 } },
        { type: "dynamic-tool", toolName: "mail", toolCallId: "b", state: "output-error", input: {}, errorText: "no" },
        { type: "step-start" },
        { type: "data-todos", id: "t", data: [] },
        { type: "text", text: "3 degrees.", state: "done" }
      ]
    }
  ]

  it.effect("become a thread, with which an agent goes on", () =>
    Effect.gen(function* () {
      const messages = yield* AiSdk.decodeMessages(stored)
      assert.deepStrictEqual(
        messages.map((message) => [message.role, Message.text(message)]),
        [
          ["system", "Be kind."],
          ["human", "How warm is it?"],
          ["ai", ""],
          ["tool", '{"c":3}'],
          ["tool", "no"],
          ["ai", "3 degrees."]
        ]
      )
      const store = yield* SessionStore.SessionStore
      yield* store.create({ threadId: "t" })
      const entries = messages.map((message) => ({ id: message.id, entry: { _tag: "Message" as const, message } }))
      yield* store.append("t", { leaf: null, entries })
      const result = yield* Agent.run(alone, "And tomorrow?", { threadId: "t" })
      assert.strictEqual(result.text, "answer 7")
      const [, , turn] = result.messages
      assert.deepStrictEqual(turn?.role === "ai" ? turn.toolCalls : [], [
        { id: "a", name: "weather", arguments: { city: "Oslo" } },
        { id: "b", name: "mail", arguments: {} }
      ])
    }).pipe(Effect.provide([model, threads]))
  )

  it.effect("that are none are refused by their place", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [unknown, string]> = [
        [{}, "the body: expected array, found {}"],
        [[{ role: "user" }], "[0].parts: "],
        [[{ role: "robot", parts: [] }], 'there is no role "robot"'],
        [[{ role: "user", parts: [{ type: "file", url: "file:///etc/passwd" }] }], "data URL"]
      ]
      for (const [messages, problem] of wrong) {
        assert.include((yield* Effect.flip(AiSdk.decodeMessages(messages))).message, problem)
      }
    })
  )
})
