/** A script chooses the schema of an agent's answer. None keeps the host busy, or breaks the call. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type Json, Message, Tool } from "effect-deepagents"
import { CodeMode } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { TestChatModel } from "effect-deepagents/testing"

/** Schemas that refer to two copies of the next one each: 2^40 of them hold for one value. */
const doubling = (keyword: "allOf" | "anyOf") => {
  const levels = Array.from({ length: 40 }, (_, at) => {
    const next = { $ref: `#/$defs/a${at + 1}` }
    return [`a${at}`, { [keyword]: [next, next] }]
  })
  return { $ref: "#/$defs/a0", $defs: { ...Object.fromEntries(levels), a40: { type: "string" } } }
}

const nested = Array.from({ length: 1_300 }).reduce<Json.JsonObject>((inner) => ({ allOf: [inner] }), {})

/** A schema that refers to the next one, which refers to the next one, and so on. */
const chain = (length: number) => {
  const links = Array.from({ length }, (_, at) => [`a${at}`, { $ref: `#/$defs/a${at + 1}` }])
  return { $ref: "#/$defs/a0", $defs: { ...Object.fromEntries(links), [`a${length}`]: {} } }
}

const schemas = {
  "doubles by allOf": [doubling("allOf"), 5],
  "doubles by anyOf": [doubling("anyOf"), 5],
  "is nested deeply": [nested, 5],
  "has a pattern that hangs": [{ type: "string", pattern: "^(a+)+$" }, `${"a".repeat(40)}!`]
} as const

it.effect.each(Object.entries(schemas))(
  "an answer is read by a schema that %s",
  ([, [schema, said]]) =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", description: "Hears", prompt: "helper" })
      const agent = Agent.make({ name: "coder", prompt: "coder", middleware: [CodeMode.make({ agents: [helper] })] })
      const script = `return await agent("x", { schema: JSON.parse(${JSON.stringify(JSON.stringify(schema))}) })`
      const model = TestChatModel.reactive(({ messages, tools }) => {
        if (tools.every(({ name }) => name !== "run_script")) return JSON.stringify(said)
        const last = messages.at(-1)
        return last?.role === "tool"
          ? Message.text(last)
          : TestChatModel.calls([{ name: "run_script", arguments: { script } }])
      })
      const { text } = yield* Effect.provide(Agent.run(agent, "go"), model)
      assert.strictEqual(text, String(said))
    }).pipe(Effect.provide(NodeScripts.layer())),
  30_000
)

it.effect("a tool of a stranger may have such a schema", () =>
  Effect.gen(function* () {
    for (const schema of [doubling("allOf"), doubling("anyOf"), nested, chain(400), chain(20_000)]) {
      const tool = Tool.dynamic("look", {
        description: "Looks",
        parameters: { type: "object", properties: { at: schema }, ...schema },
        execute: () => Effect.succeed("seen")
      })
      const agent = Agent.make({ name: "reader", prompt: "", tools: [tool] })
      const model = TestChatModel.script([TestChatModel.calls([{ name: "look", arguments: { at: 1 } }]), "Done."])
      const { messages } = yield* Effect.provide(Agent.run(agent, "go"), model)
      assert.isTrue(messages.some((message) => message.role === "tool" && Message.text(message) === "seen"))
    }
  })
)
