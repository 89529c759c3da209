import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  Agent,
  type AgentError,
  Approval,
  type ChatModel,
  Message,
  type ModelError,
  type Json,
  Tool
} from "effect-deepagents"
import { DeepAgent } from "effect-deepagents/deep"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as v from "valibot"
import { expectTypeOf } from "vitest"
import { z } from "zod"
import { z as zod3 } from "zod/v3"
import type { StandardSchema } from "../../src/core/schema/standard.ts"

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

/** What `toStandardJsonSchema` of `@valibot/to-json-schema` does. */
const withJsonSchema = <O>(
  schema: v.GenericSchema<unknown, O>,
  jsonSchema: { readonly [key: string]: unknown }
): StandardSchema<O> => ({
  "~standard": {
    version: 1,
    vendor: "valibot",
    validate: (value) => schema["~standard"].validate(value),
    jsonSchema: { input: () => jsonSchema }
  }
})

const problemOf = <O, E, R>(agent: Agent.Agent<O, E, R>) =>
  Effect.map(Effect.flip(Agent.run(agent, "go")), (error) => {
    const { reason } = error as AgentError.AgentError
    return reason._tag === "InvalidAgent" ? reason.problem : assert.fail(reason._tag)
  })

const callOf = (args: { readonly [key: string]: never } | object) =>
  TestChatModel.calls([{ name: "book", arguments: args as {} }])

describe("parameters in a schema of another library", () => {
  const seen: Array<unknown> = []
  const book = Tool.make("book", {
    description: "Books a room",
    parameters: z.object({
      room: z.string().describe("Its name"),
      guests: z.number().int().min(1),
      note: z.string().default("none"),
      from: z.string().transform((day) => day.length)
    }),
    execute: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ room: string; guests: number; note: string; from: number }>()
      return Effect.sync(() => (seen.push(args), "booked"))
    }
  })
  expectTypeOf(book).toEqualTypeOf<Tool.Tool & Tool.Takes<Json.JsonObject>>()

  it.effect("are shown to the model as JSON Schema, decoded, and coerced if their form is wrong", () =>
    Effect.gen(function* () {
      seen.length = 0
      const agent = Agent.make({ name: "a", prompt: "", tools: [book] })
      const { events } = yield* AgentTest.collect(agent, "go")
      assert.deepStrictEqual(seen, [{ room: "Blue", guests: 2, note: "none", from: 6 }])
      const called = events.flatMap((event) => (event._tag === "ToolCalled" ? [event.arguments] : []))
      assert.deepStrictEqual<unknown>(called, [{ room: "Blue", guests: 2, from: "monday" }])
      const [request] = yield* TestChatModel.requests
      const parameters = request?.tools[0]?.parameters
      assert.strictEqual(parameters?.["type"], "object")
      assert.deepStrictEqual<unknown>(parameters?.["required"], ["room", "guests", "from"])
      assert.notProperty(parameters, "$schema")
    }).pipe(Effect.provide(TestChatModel.script([callOf({ room: "Blue", guests: "2", from: "monday" }), "done"])))
  )

  it.effect("are refused with the same messages as those of Effect", () =>
    Effect.gen(function* () {
      const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [book] }), "go")
      const [answer = ""] = answers(messages)
      assert.include(answer, "The arguments are not valid. Correct them and call again:\n")
      assert.include(answer, "- `room` is missing")
      assert.match(answer, /- `guests`: .*expected.* got 0/)
      assert.include(answer, "- `from`: ")
      assert.isBelow(answer.length, 1_500)
    }).pipe(Effect.provide(TestChatModel.script([callOf({ guests: 0, from: { a: "x".repeat(100_000) } }), "done"])))
  )

  it.effect("may be validated by a promise, before any call of the round runs", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const parameters = z.object({
        room: z.string().refine(async (room) => {
          await Promise.resolve()
          log.push(`looked up ${room}`)
          return room !== "Red"
        }, "there is no such room")
      })
      const tool = Tool.make("book", {
        description: "",
        parameters,
        needsApproval: ({ room }) => room === "Green",
        execute: ({ room }) => Effect.sync(() => (log.push(`booked ${room}`), "booked"))
      })
      const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [tool] }), "go").pipe(
        Effect.provideService(Approval.Approvals, { decide: () => Effect.never })
      )
      // zod begins to validate a first time as if there were no promise.
      assert.deepStrictEqual([...new Set(log)], ["looked up Blue", "looked up Red", "booked Blue"])
      assert.isAtMost(log.length, 5)
      assert.strictEqual(answers(messages)[0], "booked")
      assert.include(answers(messages)[1] ?? "", '- `room`: there is no such room, got "Red"')
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "book", arguments: { room: "Blue" } },
            { name: "book", arguments: { room: "Red" } }
          ]),
          "done"
        ])
      )
    )
  )

  it.effect("a validation that throws, or a promise that is rejected, is the call's failure", () =>
    Effect.gen(function* () {
      const broken = (validate: () => Promise<never>) =>
        Tool.make("book", {
          description: "",
          parameters: {
            "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input: () => ({ type: "object" }) } }
          } satisfies StandardSchema,
          execute: () => Effect.succeed("never")
        })
      for (const validate of [
        () => Promise.reject(new Error("down")),
        () => {
          throw new Error("down")
        }
      ]) {
        const agent = Agent.make({ name: "a", prompt: "", tools: [broken(validate)] })
        const { messages } = yield* Agent.run(agent, "go").pipe(
          Effect.provide(TestChatModel.script([callOf({}), "done"]))
        )
        assert.include(answers(messages)[0] ?? "", "broke down when it read the arguments")
      }
    })
  )

  it.effect("without a JSON Schema, the agent says what to do before its first round", () =>
    Effect.gen(function* () {
      const old = Tool.make("old", {
        description: "",
        // @ts-expect-error schemas of zod 3 have no JSON Schema: scripts/first/mistakes.ts has the compiler's words
        parameters: zod3.object({ room: zod3.string() }),
        execute: () => ""
      })
      const advice = yield* problemOf(Agent.make({ name: "a", prompt: "", tools: [old] }))
      assert.include(advice, "update zod (zod has it from 4.2 on)")
      const schema = v.object({ room: v.string() })
      const tool = Tool.make("book", {
        description: "",
        // @ts-expect-error valibot's own schemas have no JSON Schema
        parameters: schema,
        execute: () => Effect.succeed("")
      })
      const problem = yield* problemOf(Agent.make({ name: "a", prompt: "", tools: [tool] }))
      assert.include(problem, 'the tool "book": the schema of valibot gives no JSON Schema')
      assert.include(problem, "@valibot/to-json-schema")
      const wrapped = Tool.make("book", {
        description: "",
        parameters: withJsonSchema(schema, { type: "object", properties: { room: { type: "string" } } }),
        execute: ({ room }) => {
          expectTypeOf(room).toEqualTypeOf<string>()
          return Effect.succeed(`booked ${room}`)
        }
      })
      const output = yield* Tool.run(wrapped, { room: "Blue" })
      assert.deepStrictEqual<unknown>(output.content, [{ type: "text", text: "booked Blue" }])
      const failure = yield* Effect.flip(Tool.run(wrapped, {}))
      assert.include(failure.message, "- `room` is missing")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("refuses a schema without a JSON Schema, or of no object", () =>
    Effect.gen(function* () {
      const of = (parameters: StandardSchema<{}>) =>
        problemOf(
          Agent.make({
            name: "a",
            prompt: "",
            tools: [Tool.make("book", { description: "", parameters, execute: () => Effect.succeed("") })]
          })
        )
      assert.include(yield* of(z.object({ day: z.date() })), "zod can't write the schema as JSON Schema")
      assert.include(yield* of(z.string()), "not the schema of an object")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})

describe("an output in a schema of another library", () => {
  const Weather = z.object({ city: z.string(), degrees: z.number() })
  const agent = Agent.make({ name: "w", prompt: "", output: Weather })
  expectTypeOf(agent).toEqualTypeOf<
    Agent.Agent<{ city: string; degrees: number }, ModelError.ModelError, ChatModel.ChatModel>
  >()
  const deep = DeepAgent.make({ name: "d", prompt: "", output: Weather })
  expectTypeOf<Agent.Output<typeof deep>>().toEqualTypeOf<{ city: string; degrees: number }>()
  expectTypeOf<Agent.Output<ReturnType<typeof makeLister>>>().toEqualTypeOf<ReadonlyArray<string>>()
  const makeLister = () =>
    Agent.make({ name: "l", prompt: "", output: withJsonSchema<ReadonlyArray<string>>(v.array(v.string()), list) })
  const list = { type: "array", items: { type: "string" } }

  it.effect("is asked for, repaired and decoded", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(result.output, { city: "Bern", degrees: 21 })
      const repair = result.messages.find((message) => message.source === "output-repair")
      assert.include(repair === undefined ? "" : Message.text(repair), "- `degrees` is missing")
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual<unknown>(request?.outputSchema?.["required"], ["city", "degrees"])
    }).pipe(Effect.provide(TestChatModel.script(['{"city":"Bern"}', '{"city":"Bern","degrees":"21"}'])))
  )

  it.effect("that is no object is wrapped for the provider", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* Agent.run(makeLister(), "go")).output, ["a", "b"])
    }).pipe(Effect.provide(TestChatModel.script(['{"value":["a","b"]}'])))
  )

  it.effect("without a JSON Schema is refused before the first round", () =>
    Effect.gen(function* () {
      // @ts-expect-error valibot's own schemas have no JSON Schema
      const bare: Agent.Agent<unknown> = Agent.make({ name: "v", prompt: "", output: v.string() })
      assert.include(yield* problemOf(bare), "the output: the schema of valibot gives no JSON Schema")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("of Effect that is of the standard too is read as Effect's", () =>
    Effect.gen(function* () {
      const schema = Schema.toStandardSchemaV1(Schema.Struct({ n: Schema.Finite }))
      const result = yield* Agent.run(Agent.make({ name: "e", prompt: "", output: schema }), "go")
      assert.deepStrictEqual(result.output, { n: 1 })
    }).pipe(Effect.provide(TestChatModel.script(['{"n":1}'])))
  )
})
