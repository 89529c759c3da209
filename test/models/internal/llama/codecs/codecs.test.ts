import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Codec } from "../../../../../src/models/local/internal/codecs/Codec.ts"
import { gemma } from "../../../../../src/models/local/internal/codecs/gemma.ts"
import { hermes } from "../../../../../src/models/local/internal/codecs/hermes.ts"
import { lfm2 } from "../../../../../src/models/local/internal/codecs/lfm2.ts"
import { qwenXml } from "../../../../../src/models/local/internal/codecs/qwenXml.ts"
import { sampled, scaled } from "../../../../scale.ts"
import { answered, cutText, decode, deltas, joinDeltas, tool, writeCalls } from "./decode.ts"

const codecs: ReadonlyArray<Codec> = [lfm2, hermes, qwenXml, gemma]

const fragments = [
  "<",
  "<think>",
  "</think>",
  "<|channel>thought\n",
  "<channel|>",
  "<|tool_call_start|>",
  "<|tool_call_end|>",
  "[f(",
  "a=1",
  "b='it's'",
  "x=",
  ", ",
  ")]",
  "<tool_call>",
  "</tool_call>",
  "</tool_call",
  '{"name": "f", "arguments": ',
  '{"a": 1}',
  "}",
  "]",
  "<function=f>",
  "<parameter=a>",
  "\n",
  "</parameter>",
  "</function>",
  "<|tool_call>",
  "<tool_call|>",
  "call:f{",
  "a:",
  '<|"|>',
  '"',
  "'",
  '"""',
  "\\",
  "\\u00e9",
  "\\ud83d\\ude00",
  "{",
  "[",
  "(",
  "True",
  "-1.5e3",
  "😀",
  "日本",
  " ",
  "word"
]

const noise = fc
  .array(
    fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...fragments) }, fc.string({ maxLength: 4, unit: "binary" })),
    {
      maxLength: 30
    }
  )
  .map((parts) => parts.join(""))

/** JSON that has one spelling: no number that a double can't hold, no negative zero. */
const clean = fc
  .jsonValue({ maxDepth: 4 })
  .map((value): unknown =>
    JSON.parse(JSON.stringify(value), (_, item: unknown) =>
      typeof item === "number" ? Math.round(item % 1e9) / 8 + 0 : item
    )
  )

const isJson = (value: unknown): value is string | number | boolean | null => value !== undefined

describe("every codec", () => {
  it("says the same of a text however it is cut", () => {
    for (const codec of codecs) {
      fc.assert(
        fc.property(noise, fc.array(fc.nat(), { maxLength: 12 }), fc.boolean(), (text, places, inThought) => {
          const whole = joinDeltas(deltas(codec, [text], { inThought }))
          assert.deepStrictEqual(joinDeltas(deltas(codec, cutText(text, places), { inThought })), whole)
          assert.deepStrictEqual(joinDeltas(deltas(codec, text.split(""), { inThought })), whole)
        }),
        { numRuns: scaled(500) }
      )
    }
  })

  it("ends each call once, for any text, and streams the same as it says in the end", () => {
    for (const codec of codecs) {
      fc.assert(
        fc.property(noise, (text) => {
          const said = joinDeltas(deltas(codec, [text]))
          const ends = said.flatMap((delta) => (delta._tag === "Call" || delta._tag === "Malformed" ? [delta] : []))
          assert.deepStrictEqual(
            ends.map((end) => end.call),
            ends.map((_, index) => index)
          )
          for (const end of ends) {
            if (end._tag === "Malformed") {
              assert.include(text, end.raw)
              assert.isAbove(end.problem.length, 0)
              continue
            }
            const streamed = said.map((delta) =>
              delta._tag === "CallDelta" && delta.call === end.call ? delta.text : ""
            )
            assert.deepStrictEqual(JSON.parse(streamed.join("")), end.arguments)
          }
        }),
        { numRuns: scaled(1000) }
      )
    }
  })

  it("reads its own output back: nested values, quotes, escapes, unicode", () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,10}$/)
    for (const codec of codecs) {
      // A closing tag inside of a value of Qwen's, or a quote of Gemma's inside of a string, has no spelling.
      const hasSpelling = (text: string) => !text.includes("</parameter>") && !text.includes('<|"|>')
      const args = fc
        .dictionary(name, codec.name === "qwen-xml" ? fc.string({ unit: "binary" }) : clean, { maxKeys: 5 })
        .filter((value) => hasSpelling(JSON.stringify(value)))
      fc.assert(
        fc.property(fc.array(fc.tuple(name, args), { minLength: 1, maxLength: 3 }), (calls) => {
          const expected = calls.map(([called, given]) => {
            const json: Record<string, string | number | boolean | null> = {}
            for (const [key, value] of Object.entries(given)) if (isJson(value)) json[key] = value
            return [called, json] as const
          })
          const text = writeCalls(
            codec,
            expected.map(([called, given]) => answered(called, given))
          )
          const { calls: read, malformed } = decode(codec, text)
          assert.deepStrictEqual(malformed, [])
          assert.deepStrictEqual(read, expected)
        }),
        { numRuns: scaled(300) }
      )
    }
  })

  it("reads typed values of Qwen's tags by the tool's schema", () => {
    fc.assert(
      fc.property(clean, (value) => {
        if (!isJson(value) || typeof value === "string") return
        const schema = { type: ["null", "boolean", "number", "array", "object"] }
        const text = writeCalls(qwenXml, [answered("f", { a: value })])
        const { calls } = decode(qwenXml, text, { tools: [tool("f", { a: schema })] })
        assert.deepStrictEqual(calls, [["f", { a: value }]])
      })
    )
  })

  it("reports a call that is cut anywhere, with all of its text", () => {
    const args = { path: "a b", list: [1, { deep: 'it\'s "so"' }], flag: true }
    for (const codec of codecs) {
      const text = writeCalls(codec, [answered("write", args)]).trim()
      const opening = text.slice(0, text.indexOf(">") + 1)
      const last =
        codec.name === "qwen-xml"
          ? text.indexOf("</function>") + 10
          : text.lastIndexOf(codec.name === "lfm2" ? ")" : "}")
      for (let length = opening.length; length <= last; length++) {
        const part = text.slice(0, length)
        const { calls, malformed } = decode(codec, part)
        assert.deepStrictEqual(calls, [], part)
        assert.deepStrictEqual(
          malformed.map((call) => call.raw),
          [part]
        )
      }
      assert.lengthOf(decode(codec, text).calls, 1)
    }
  })

  it("takes a hostile text of any size in linear time", () => {
    const size = 30_000
    const patterns = fragments.flatMap((fragment) => {
      const many = fragment.repeat(Math.ceil(size / fragment.length)).slice(0, size)
      return [
        many,
        `<|tool_call_start|>[f(a=${many}`,
        `<tool_call>{"name": "f", "arguments": ${many}`,
        `<tool_call><function=f><parameter=a>${many}`,
        `<|tool_call>call:f{a:${many}`
      ]
    })
    patterns.push(`<|tool_call_start|>[f(a='${"\\".repeat(size)}`, `<tool_call>{"name": "${'\\"'.repeat(size / 2)}`)
    // Something quadratic would take minutes for each of them.
    for (const codec of codecs) for (const text of sampled(patterns)) deltas(codec, cutText(text, [7, 100, size]))
  }, 60_000)

  it("does not run out of stack on deep nesting, and says that it is too deep", () => {
    const deep = (open: string, close: string) => `${open.repeat(100_000)}${close.repeat(100_000)}`
    for (const [codec, text] of [
      [lfm2, `<|tool_call_start|>[f(a=${deep("[", "]")})]<|tool_call_end|>`],
      [lfm2, `<|tool_call_start|>[f(a=${deep('{"a":', "}")})]<|tool_call_end|>`],
      [hermes, `<tool_call>{"name": "f", "arguments": ${deep('{"a":', "}")}}</tool_call>`],
      [hermes, `<tool_call>${deep('{"function":', "}")}</tool_call>`],
      [gemma, `<|tool_call>call:f${deep("{a:", "}")}<tool_call|>`]
    ] as const) {
      const { calls, malformed } = decode(codec, text)
      assert.lengthOf(calls, 0)
      assert.lengthOf(malformed, 1)
      assert.include(malformed[0]?.problem, "deeper than")
      assert.strictEqual(malformed[0]?.raw, text)
    }
  })
})
