import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { Agent, type Json, Parse } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { spentBy } from "../spent.ts"

const isContainer = (value: unknown) => typeof value === "object" && value !== null

describe("Parse.json", () => {
  it("finds any object or array between words, and its place", () => {
    // Words without brackets, which may have quotes.
    const words = fc.string().map((text) => text.replaceAll(/[{}[\]]/g, ""))
    fc.assert(
      fc.property(words, fc.jsonValue().filter(isContainer), words, fc.boolean(), (before, value, after, isPretty) => {
        const json = JSON.stringify(value, null, isPretty ? 2 : 0)
        const text = `${before}${json}${after}`
        const found = Result.getOrThrow(Parse.json(text))
        assert.deepStrictEqual(found.value, JSON.parse(json) as Json.Json)
        if (before.trim() + after.trim() !== "") assert.strictEqual(text.slice(found.start, found.end), json)
      })
    )
  })

  it("takes the longest one, without comments and last commas", () => {
    const value = (text: string) => Result.getOrThrow(Parse.json(text)).value
    assert.deepStrictEqual(value('As [1] says: ```json\n{"a": [1, 2,], // note\n}\n``` and [2].'), { a: [1, 2] })
    assert.deepStrictEqual(value('I say "no {". Then {"a": "}"}'), { a: "}" })
    assert.deepStrictEqual(value("{not this} but [1, {}]"), [1, {}])
    assert.strictEqual(value(" 5 "), 5)
  })

  it("never throws, in time that grows with the text, and says where the JSON stops", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "\\", "a", "\n") }), (text) => {
        const found = Parse.json(text)
        if (Result.isSuccess(found)) assert.isAtMost(found.success.end, text.length)
        else assert.isAtMost(found.failure.position, text.length)
      })
    )
    for (const text of ["[".repeat(200_000), "{".repeat(100_000) + "}".repeat(100_000), '["'.repeat(100_000)]) {
      assert.isTrue(Result.isFailure(Parse.json(text)))
    }
    const problem = (text: string) =>
      Result.match(Parse.json(text), { onSuccess: () => "", onFailure: (e) => e.message })
    assert.strictEqual(problem('Here: {"a": 1'), 'The "{" is never closed (at character 7)')
    assert.strictEqual(problem("nothing"), "There is no object and no array in the text (at character 1)")
    assert.strictEqual(problem("see {this}"), "What stands in brackets is not JSON (at character 5)")
    assert.match(problem("[".repeat(3_000) + "]".repeat(3_000)), /deep/)
  })

  it("gives up on a text of brackets that never close, however long it is", () => {
    const millis = spentBy(() => {
      for (const text of ["[", '{"', "{/*"]) assert.isTrue(Result.isFailure(Parse.json(text.repeat(1_000_000))))
    })
    // All tries would take 8 seconds on a quiet machine.
    assert.isBelow(millis, 4_000)
  })

  it.effect("saves an answer with a schema a repair, if the found value fits", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", output: Schema.Struct({ score: Schema.Finite }) })
      const runWith = (answers: ReadonlyArray<string>) =>
        Effect.map(Effect.provide(Agent.run(agent, "go"), TestChatModel.script(answers)), ({ output, rounds }) => [
          output.score,
          rounds
        ])
      assert.deepStrictEqual(yield* runWith(['Here it is:\n```json\n{"score": 3,}\n```\nDone.']), [3, 1])
      assert.deepStrictEqual(yield* runWith(["I found [1] and [2].", '{"score": 4}']), [4, 2])
    })
  )
})

describe("Parse.markdown", () => {
  it("reads headings, listings, items and text, with their places", () => {
    const text = "# One #\nWords\nmore\n\n- a\n  2. b\n```ts x\nconst a = 1\n# no heading\n```\n## Two\r\n~~~\nopen"
    const blocks = Parse.markdown(text)
    assert.deepStrictEqual(
      blocks.map(({ _tag, text }) => [_tag, text]),
      [
        ["Heading", "One"],
        ["Text", "Words\nmore"],
        ["Item", "a"],
        ["Item", "b"],
        ["Code", "const a = 1\n# no heading"],
        ["Heading", "Two"],
        ["Code", "open"]
      ]
    )
    const [first, , item, ordered, code] = blocks
    assert.deepInclude(first, { level: 1, start: 0, end: 7 })
    assert.deepInclude(item, { indent: 0, isOrdered: false })
    assert.deepInclude(ordered, { indent: 2, isOrdered: true })
    assert.deepInclude(code, { language: "ts" })
    assert.strictEqual(text.slice(code?.start, code?.end), "```ts x\nconst a = 1\n# no heading\n```")
  })

  it("ends a listing at a mark alone", () => {
    assert.deepInclude(Parse.markdown("```\na\n``` ts\nb\n````")[0], { text: "a\n``` ts\nb" })
  })

  it("never loses a listing, with any content", () => {
    const line = fc.string({ unit: fc.constantFrom("#", "-", " ", "a", "`", "~", "1", ".") })
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const code = lines.join("\n")
        const fence = "`".repeat(40)
        const [block, ...rest] = Parse.markdown(`${fence}\n${code}\n${fence}`)
        assert.deepInclude(block, { _tag: "Code", text: code })
        assert.strictEqual(rest.length, 0)
      })
    )
  })
})

describe("Parse.regex", () => {
  it("finds all matches with named groups and places, with or without the flag g", () => {
    for (const pattern of [/(?<key>\w+)=(?<value>\d+)?/, /(?<key>\w+)=(?<value>\d+)?/g]) {
      assert.deepStrictEqual(Parse.regex("a=1 b=", pattern), [
        { text: "a=1", groups: { key: "a", value: "1" }, start: 0, end: 3 },
        { text: "b=", groups: { key: "b" }, start: 4, end: 6 }
      ])
    }
    assert.strictEqual(Parse.regex("aaa", /x*/).length, 4)
  })
})
