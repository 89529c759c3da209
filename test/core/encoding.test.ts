import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentEvent, type Content, type Json, Message, ToolCall, Usage } from "effect-deepagents"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\ud800", "é 日本 😀", '\u0000\n\r\t"\\', "x".repeat(200_000))
)
const json: fc.Arbitrary<Json.Json> = fc.jsonValue({ maxDepth: 6 }) as fc.Arbitrary<Json.Json>
const object: fc.Arbitrary<Json.JsonObject> = fc.dictionary(fc.string(), json, { maxKeys: 4 })
const optional = <Key extends string, A>(key: Key, value: fc.Arbitrary<A>) =>
  fc.option(
    value.map((one) => ({ [key]: one }) as { readonly [K in Key]: A }),
    { nil: {} }
  )
const source: fc.Arbitrary<Content.Source> = fc.oneof(
  fc.record({ kind: fc.constant("url" as const), url: text }),
  fc.record({ kind: fc.constant("base64" as const), data: text, mimeType: text }),
  fc.record({ kind: fc.constant("fileId" as const), fileId: text })
)
const providerData = optional("providerData", object)
const mergeAll = <A extends object, B extends object>(left: fc.Arbitrary<A>, right: fc.Arbitrary<B>) =>
  fc.tuple(left, right).map(([a, b]) => ({ ...a, ...b }))
const block: fc.Arbitrary<Content.Block> = fc.oneof(
  mergeAll(fc.record({ type: fc.constant("text" as const), text }), providerData),
  mergeAll(fc.record({ type: fc.constant("reasoning" as const), text }), providerData),
  mergeAll(fc.record({ type: fc.constant("image" as const), source }), providerData),
  mergeAll(mergeAll(fc.record({ type: fc.constant("file" as const), source }), optional("name", text)), providerData)
)
const common = mergeAll(
  fc.record({ id: text, content: fc.array(block, { maxLength: 4 }) }),
  mergeAll(optional("source", text), providerData)
)
const usage = fc
  .record({
    inputTokens: fc.nat(),
    outputTokens: fc.nat(),
    cost: fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })
  })
  .map(Usage.make)
const message: fc.Arbitrary<Message.Message> = fc.oneof(
  mergeAll(fc.record({ role: fc.constant("system" as const) }), common),
  mergeAll(fc.record({ role: fc.constant("human" as const) }), common),
  mergeAll(
    mergeAll(
      fc.record({
        role: fc.constant("ai" as const),
        toolCalls: fc.array(fc.record({ id: text, name: text, arguments: object }), { maxLength: 3 }),
        malformedToolCalls: fc.array(fc.record({ id: text, raw: text, problem: text }), { maxLength: 2 }),
        stopReason: fc.constantFrom(...Message.TurnStop.literals)
      }),
      mergeAll(optional("usage", usage), optional("model", text))
    ),
    common
  ),
  mergeAll(
    fc.record({ role: fc.constant("tool" as const), toolCallId: text, toolName: text, isError: fc.boolean() }),
    common
  )
)

const throughJson = <A>(value: A): unknown => JSON.parse(JSON.stringify(value))

describe("messages", () => {
  it.effect("round-trip through versioned JSON, with any content (property)", () =>
    Effect.sync(() =>
      fc.assert(
        fc.property(message, (value) => {
          const wire = throughJson(Message.encode(value))
          // JSON has no -0, nor have we.
          assert.deepStrictEqual(throughJson(Effect.runSync(Message.decode(wire))), throughJson(value))
          assert.strictEqual((wire as { readonly v: number }).v, 1)
        }),
        { numRuns: scaled(300) }
      )
    )
  )

  it.effect("deep JSON in arguments round-trips", () =>
    Effect.gen(function* () {
      let deep: Json.Json = "bottom"
      for (let depth = 0; depth < 500; depth++) deep = depth % 2 === 0 ? [deep] : { k: deep }
      const value = Message.ai("", { toolCalls: [{ id: "1", name: "t", arguments: { deep } }] })
      assert.deepStrictEqual(yield* Message.decode(throughJson(Message.encode(value))), value)
    })
  )

  it.effect("an unknown version, role or content type is a typed error that names it", () =>
    Effect.gen(function* () {
      const wire = throughJson(Message.encode(Message.human("hi"))) as Record<string, unknown>
      const failure = (input: unknown) => Effect.flip(Message.decode(input))
      const version = yield* failure({ ...wire, v: 2 })
      assert.deepStrictEqual([version.path, version.found, version.expected], ["v", "2", "version 1"])
      assert.strictEqual((yield* failure({ ...wire, v: undefined })).found, "nothing")
      const role = yield* failure({ ...wire, role: "robot" })
      assert.deepStrictEqual([role.path, role.found], ["role", '"robot"'])
      const type = yield* failure({ ...wire, content: [{ type: "text", text: "" }, { type: "hologram" }] })
      assert.deepStrictEqual([type.path, type.found], ["content[1].type", '"hologram"'])
      assert.include(type.expected, "one of text, reasoning, image, file")
      const id = yield* failure({ ...wire, id: 7 })
      assert.strictEqual(id._tag, "InvalidEncoding")
      assert.strictEqual((yield* failure("text")).found, '"text"')
      assert.strictEqual((yield* failure(null)).expected, "an object")
    })
  )
})

describe("events", () => {
  const base = { seq: 1, runId: "r", path: ["a"], at: 5 }

  it.effect("an event with any message in it round-trips (property)", () =>
    Effect.sync(() =>
      fc.assert(
        fc.property(message, text, json, (value, said, payload) => {
          const events: ReadonlyArray<AgentEvent.AgentEvent> = [
            { ...base, _tag: "MessageAppended", message: value },
            { ...base, _tag: "TextDelta", text: said },
            { ...base, _tag: "Custom", name: said, payload },
            { ...base, _tag: "RoundCompleted", round: 1, stopReason: "stop", usage: Usage.zero }
          ]
          for (const event of events) {
            const wire = throughJson(AgentEvent.encode(event))
            assert.deepStrictEqual(throughJson(Effect.runSync(AgentEvent.decode(wire))), throughJson(event))
          }
        }),
        { numRuns: scaled(100) }
      )
    )
  )

  it.effect("reads events of earlier versions: missing fields are empty", () =>
    Effect.gen(function* () {
      const call = { callId: "c", toolName: "pay" }
      const asked = { v: 1, ...base, _tag: "ApprovalRequested", ...call, arguments: { n: 1 }, description: "may I?" }
      const { v: _, ...same } = asked
      assert.deepStrictEqual<unknown>(yield* AgentEvent.decode(asked), { ...same, id: "", allow: [] })
      const answered = { v: 1, ...base, _tag: "ApprovalResolved", ...call, decision: "void" }
      const { v: __, ...resolved } = answered
      assert.deepStrictEqual<unknown>(yield* AgentEvent.decode(answered), { ...resolved, id: "" })
    })
  )

  it.effect("an unknown tag, or an unknown block inside a message, is named", () =>
    Effect.gen(function* () {
      const tag = yield* Effect.flip(AgentEvent.decode({ v: 1, ...base, _tag: "Teleported" }))
      assert.deepStrictEqual([tag.what, tag.path, tag.found], ["event", "_tag", '"Teleported"'])
      const wire = throughJson(
        AgentEvent.encode({ ...base, _tag: "MessageAppended", message: Message.human("x") })
      ) as Record<string, unknown>
      const inner = yield* Effect.flip(
        AgentEvent.decode({ ...wire, message: { role: "human", id: "1", content: [{ type: "smell" }] } })
      )
      assert.deepStrictEqual([inner.path, inner.found], ["message.content[0].type", '"smell"'])
    })
  )
})

describe("arguments for a person", () => {
  it("are one line, keys in order, strings unquoted", () => {
    assert.strictEqual(
      ToolCall.describeArguments({ b: "two", a: [1, { d: null, c: true }] }),
      "a: [1, {c: true, d: null}], b: two"
    )
    assert.strictEqual(ToolCall.describeArguments({}), "")
  })
})

describe("usage", () => {
  it("adds up, and is priced by fresh, cached and written tokens", () => {
    const used = Usage.make({
      inputTokens: 1_000_000,
      cacheReadTokens: 400_000,
      cacheWriteTokens: 100_000,
      outputTokens: 500_000
    })
    const priced = Usage.priced(used, { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 })
    assert.closeTo(priced.cost ?? 0, 0.5 * 2 + 0.4 * 0.2 + 0.1 * 2.5 + 0.5 * 10, 1e-9)
    assert.strictEqual(Usage.priced({ ...used, cost: 7 }, { input: 1, output: 1 }).cost, 7)
    assert.strictEqual(Usage.add(Usage.zero, Usage.zero).cost, undefined)
    assert.strictEqual(Usage.add(Usage.zero, Usage.make({ cost: 1 })).cost, 1)
    assert.strictEqual(Usage.totalTokens(used), 1_500_000)
  })
})
