/**
 * Entries that are recognised without their schema are what the schema would make of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Content, type Journal, Message, Usage } from "effect-deepagents"
import * as fc from "fast-check"
import * as codec from "../../src/sessions/internal/codec.ts"
import { decodeBySchema, encode, usualAppend } from "../../src/sessions/internal/jsonl/record.ts"
import { usual, usualNew } from "../../src/sessions/internal/usual.ts"
import { version } from "../../src/support/store/version.ts"

const usage = Usage.make({ inputTokens: 3, outputTokens: 2, cost: 0.5 })
const message = (one: Message.Message): Journal.Entry => ({ _tag: "Message", message: one })

const entries: ReadonlyArray<Journal.Entry> = [
  message(Message.human("hello")),
  message(Message.human("a notice", { source: "notice" })),
  message(
    Message.ai("", { toolCalls: [{ id: "1", name: "look", arguments: { path: "/a", n: 1, all: true, no: null } }] })
  ),
  message(Message.ai("done", { usage, model: "m", stopReason: "length" })),
  message(Message.tool("a result", { toolCallId: "1", toolName: "look" })),
  message(
    Message.ai([{ type: "reasoning", text: "I look", providerData: { signature: "s" } }, Content.text("there")], {
      providerData: { items: [{ id: "1" }, null] },
      toolCalls: [{ id: "1", name: "write", arguments: { edits: [{ line: 1 }] }, providerData: { deep: { er: [1] } } }]
    })
  ),
  { _tag: "State", slot: "todos", value: [{ text: "one", done: false }] },
  { _tag: "State", slot: "todos" },
  { _tag: "Step", usage, rounds: 3 },
  { _tag: "RunStarted", runId: "r", agent: "a" },
  { _tag: "RunSettled", runId: "r", outcome: "completed" }
]

const stored = entries.map((entry): unknown => JSON.parse(codec.encode(entry)))

/** A value with something changed at a random place in it. */
const changed = (value: unknown, steps: ReadonlyArray<number>, key: string, put: unknown): unknown => {
  const [step, ...rest] = steps
  if (step === undefined || typeof value !== "object" || value === null) return put
  const copy: Record<string, unknown> | Array<unknown> = Array.isArray(value) ? [...value] : { ...value }
  // No JSON has a list with a name in it, or a hole.
  const keys = Array.isArray(copy) ? Object.keys(copy) : [...Object.keys(copy), key]
  const at = keys[step % keys.length] ?? (Array.isArray(copy) ? "0" : key)
  const target = copy as Record<string, unknown>
  if (put === undefined && rest.length === 0 && Array.isArray(copy)) copy.pop()
  else if (put === undefined && rest.length === 0) delete target[at]
  else
    Object.defineProperty(target, at, {
      value: changed(target[at], rest, key, put),
      enumerable: true,
      configurable: true,
      writable: true
    })
  return copy
}

/** All objects and lists of a value. */
const objectsIn = (value: unknown): ReadonlyArray<object> =>
  typeof value === "object" && value !== null ? [value, ...Object.values(value).flatMap(objectsIn)] : []

describe("entries that are recognised", () => {
  it("are the usual ones", () => {
    for (const [index, value] of stored.entries()) assert.deepStrictEqual(usual(value), entries[index])
  })

  it("are copies", () => {
    for (const entry of entries) {
      const known = usualNew(entry)
      assert.deepStrictEqual(known, entry)
      const given = new Set(objectsIn(entry))
      assert.isEmpty(objectsIn(known).filter((one) => given.has(one)))
    }
  })

  it("are no entries of another version, or of another shape", () => {
    const [first] = stored
    assert.isUndefined(usual({ ...(first as object), v: version + 1 }))
    assert.isUndefined(usual({ _tag: "Step", usage, rounds: 3 }))
    assert.isUndefined(usualNew({ v: version, _tag: "Step", usage, rounds: 3 }))
    assert.isUndefined(usual({ v: version, _tag: "Compaction", tokensBefore: 1, tokensAfter: 1 }))
    assert.isUndefined(usual(null))
  })

  it("equal the schema's result for values that no JSON has", () => {
    class Text {
      readonly type = "text"
      readonly text = "hello"
    }
    const human = Message.human("hello")
    const odd: ReadonlyArray<unknown> = [
      { ...human, content: [new Text()] },
      { ...human, content: Object.assign([Content.text("a")], { length: 2 }) },
      { ...human, content: Object.assign([Content.text("a")], { constructor: "none", source: "me" }) },
      { ...human, source: undefined },
      { ...human, providerData: new Date() },
      { ...human, providerData: { at: new Date() } },
      { ...human, providerData: { list: [undefined] } },
      { ...human, providerData: Object.create(null) },
      Object.create(human)
    ]
    for (const one of odd) {
      const entry = { _tag: "Message", message: one }
      const known = usualNew(entry)
      if (known !== undefined) assert.deepStrictEqual(known, Result.getOrThrow(codec.checkBySchema(entry)))
    }
  })

  const names = fc.constantFrom("__proto__", "source", "providerData", "cost", "text", "v", "content", "constructor")
  const puts = fc.oneof(
    fc.jsonValue(),
    fc.constant(undefined),
    fc.constantFrom<unknown>(
      Infinity,
      NaN,
      "ai",
      "tool",
      "text",
      "image",
      [],
      {},
      [[[]]],
      [{ type: "text", text: "x" }]
    )
  )
  const changes = [fc.array(fc.nat(12), { maxLength: 5 }), names, puts] as const

  it("equal the schema's result after any change", () => {
    fc.assert(
      fc.property(fc.constantFrom(...stored, ...entries), ...changes, (value, steps, name, put) => {
        const other = changed(value, steps, name, put)
        const known = usual(other)
        if (known !== undefined) assert.deepStrictEqual(known, Result.getOrThrow(codec.decodeBySchema(other)))
        const fresh = usualNew(other)
        if (fresh !== undefined) assert.deepStrictEqual(fresh, Result.getOrThrow(codec.checkBySchema(other)))
      }),
      { numRuns: 5_000 }
    )
  })

  it("are recognised in the lines of files as the schema of lines reads them", () => {
    const lines = [null, "e0"].flatMap((leaf) =>
      [{}, { behind: null }, { behind: "e1" }].map((behind): unknown =>
        JSON.parse(
          encode({
            _tag: "Append",
            by: "w",
            at: 1,
            leaf,
            ...behind,
            entries: entries.map((entry, n) => ({ id: `${n}`, entry }))
          })
        )
      )
    )
    for (const line of lines) {
      assert.isDefined(usualAppend(line))
      assert.deepStrictEqual<unknown>(decodeBySchema(line), { change: usualAppend(line) })
    }
    fc.assert(
      fc.property(fc.constantFrom(...lines), ...changes, (line, steps, name, put) => {
        const other = changed(line, steps, name, put)
        const known = usualAppend(other)
        if (known !== undefined) assert.deepStrictEqual<unknown>(decodeBySchema(other), { change: known })
      }),
      { numRuns: 5_000 }
    )
  })
})
