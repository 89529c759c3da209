import { assert, describe, it } from "@effect/vitest"
import { toHistory } from "../../../../src/models/local/internal/history.ts"
import { definition } from "../../llama/models.ts"
import { ai, answered, human } from "./codecs/decode.ts"

const f = definition("f", { type: "object", properties: {} })

describe("a history for a chat wrapper", () => {
  it("has results inside of calls, and one item for a turn that went on behind them", () => {
    const turns = [
      human("Hi"),
      ai("I look.", [answered("f", { a: 1 }, "one"), answered("f", { a: 2 }, "two")]),
      ai("So.")
    ]
    const call = { type: "functionCall", name: "f", description: "Does f" }
    assert.deepStrictEqual<unknown>(toHistory("Be brief.", turns, [f], false), [
      { type: "system", text: "Be brief." },
      { type: "user", text: "Hi" },
      {
        type: "model",
        response: [
          "I look.",
          { ...call, params: { a: 1 }, result: "one", startsNewChunk: true },
          { ...call, params: { a: 2 }, result: "two", startsNewChunk: false },
          "So."
        ]
      }
    ])
  })

  it("has the text of an unreadable call, and its answer", () => {
    const turns = [human("Hi"), ai("", [answered("f", {}, "That was no call.", "f(")])]
    assert.deepStrictEqual<unknown>(toHistory("", turns, [f], false), [
      { type: "user", text: "Hi" },
      { type: "model", response: ["f("] },
      { type: "user", text: "That was no call." },
      { type: "model", response: [] }
    ])
  })

  it("has thoughts of the current question only, and none for a format without them", () => {
    const turns = [human("One"), ai("1", [], "old"), human("Two"), ai("2", [], "new")]
    const segment = { type: "segment", segmentType: "thought", text: "new", ended: true }
    assert.deepStrictEqual<unknown>(
      toHistory("", turns, [], true).map((item) => (item.type === "model" ? item.response : item.type)),
      ["user", ["1"], "user", [segment, "2"]]
    )
    assert.notInclude(JSON.stringify(toHistory("", turns, [], false)), "segment")
  })
})
