import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Content, Message, Tool, ToolError, ToolOutput } from "effect-deepagents"
import { Guardrail } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { failureOf } from "./run.ts"

const tool = (name: string, execute: Effect.Effect<string, ToolError.ToolError>) =>
  Tool.make(name, { description: name, parameters: {}, execute: () => execute })

const key = "the key is sk-123, and sk-456"

const read = tool("read", Effect.succeed(key))
const broken = tool("broken", Effect.fail(ToolError.make(key)))

const keys = Guardrail.toolResults({
  name: "keys",
  check: (result) => Effect.succeed(Guardrail.redact(result, /sk-\d+/))
})

const withheld = Guardrail.toolResults({
  name: "keys",
  check: ({ text }) => Effect.succeed(text.includes("sk-") ? Guardrail.trip("it names a key") : Guardrail.pass)
})

const script = (name: string) => TestChatModel.script([TestChatModel.calls([{ name }]), "done"])

/** The results of tools that the model read. */
const results = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [[Message.text(message), message.isError === true]] : []))

describe("Guardrail.toolResults", () => {
  it.effect("redacts all that it finds, in results and in failures, and failures stay failures", () =>
    Effect.gen(function* () {
      for (const one of [read, broken]) {
        const agent = Agent.make({ name: "a", prompt: "", tools: [one], middleware: [keys] })
        const { messages } = yield* Effect.provide(Agent.run(agent, "go"), script(one.name))
        assert.deepStrictEqual(results(messages), [["the key is [redacted], and [redacted]", one === broken]])
      }
    })
  )

  it.effect("a result that trips is withheld, and the model goes on; with onTrip fail, the run does not", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [read], middleware: [withheld] })
      const result = yield* Effect.provide(Agent.run(agent, "go"), script("read"))
      assert.deepStrictEqual(results(result.messages), [
        ['The result is withheld: guardrail "keys" does not allow it: it names a key', true]
      ])
      assert.strictEqual(result.text, "done")
      const strict = Guardrail.toolResults({
        name: "keys",
        check: () => Effect.succeed(Guardrail.trip("it names a key")),
        onTrip: "fail"
      })
      const failing = Agent.make({ name: "a", prompt: "", tools: [read], middleware: [strict] })
      const exit = yield* Effect.exit(Effect.provide(Agent.run(failing, "go"), script("read")))
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped", stage: "toolResult", guardrail: "keys" })
    })
  )

  it("finds text that is cut in two, with any pattern, and leaves the rest as it is", () => {
    const redact = (pattern: RegExp, ...content: ReadonlyArray<Content.Block>) => {
      const verdict = Guardrail.redact({ output: ToolOutput.make(content) }, pattern)
      return verdict._tag === "Replace" ? verdict.content : verdict._tag
    }
    const texts = (...parts: ReadonlyArray<string>) => parts.map((part) => Content.text(part))
    const image = Content.image({ base64: "AAEC", mimeType: "image/png" })
    assert.deepStrictEqual(redact(/sk-\d+/, ...texts("a s", "k-1", "23 b")), texts("a [redacted] b"))
    assert.deepStrictEqual(redact(/sk-\d+/, ...texts("a", "b")), "Pass")
    assert.deepStrictEqual(redact(/^b$/, ...texts("a", "b"), image), [...texts("a", "[redacted]"), image])
    assert.deepStrictEqual(redact(/ab/, ...texts("a"), image, ...texts("b")), "Pass")
    // A pattern of many finds has a memory of its own.
    const global = /sk-\d/g
    for (let round = 0; round < 3; round++) {
      assert.deepStrictEqual(redact(global, ...texts("sk-1 sk-2")), texts("[redacted] [redacted]"))
    }
    const long = "sk-1 ".repeat(200_000)
    assert.deepStrictEqual(redact(/sk-\d/, ...texts(long)), texts("[redacted] ".repeat(200_000)))
    assert.deepStrictEqual(redact(/\$&/, ...texts("$&")), texts("[redacted]"))
  })

  it.effect("a tool that dies tells the model no reason, and its details go with the replaced result", () =>
    Effect.gen(function* () {
      const dying = Tool.make("dying", { description: "", parameters: {}, execute: () => Effect.die(new Error(key)) })
      const detailed = Tool.make("detailed", {
        description: "",
        parameters: {},
        execute: () => Effect.succeed(ToolOutput.make(key, { details: { key } }))
      })
      for (const one of [dying, detailed]) {
        const agent = Agent.make({ name: "a", prompt: "", tools: [one], middleware: [keys] })
        const { messages } = yield* Effect.provide(Agent.run(agent, "go"), script(one.name))
        assert.notInclude(JSON.stringify(messages), "sk-")
      }
    })
  )

  it.effect("holds in sub-agents, and for results that go to another tool", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", prompt: "", tools: [read] })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [Agent.asTool(child, { name: "child", description: "" })],
        middleware: [keys]
      })
      const seen: Array<string> = []
      const model = TestChatModel.reactive(({ messages }) => {
        const last = messages.at(-1)
        if (last !== undefined) seen.push(Message.text(last))
        if (last?.role === "tool") return Message.text(last)
        return TestChatModel.calls([{ name: seen.length === 1 ? "child" : "read", arguments: { task: "x" } }])
      })
      const { text } = yield* Effect.provide(Agent.run(agent, "go"), model)
      assert.include(text, "[redacted]")
      assert.notInclude(seen.join("\n"), "sk-1")
    })
  )
})
