import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { makeThinkSplitter, type AnswerPiece, thinkTags } from "../../../src/models/internal/turn/thinkTags.ts"
import { scaled } from "../../scale.ts"

const splitTags = (chunks: ReadonlyArray<string>, inside = false) => {
  const splitter = makeThinkSplitter({ ...thinkTags, inside })
  const said: Array<AnswerPiece> = []
  for (const chunk of chunks) said.push(...splitter.push(chunk))
  said.push(...splitter.end())
  const joined: Array<AnswerPiece> = []
  for (const piece of said) {
    expect(piece.text).not.toBe("")
    const last = joined.at(-1)
    if (last?.kind === piece.kind) joined[joined.length - 1] = { kind: piece.kind, text: last.text + piece.text }
    else joined.push(piece)
  }
  return joined
}

const sayText = (text: string, inside = false) =>
  splitTags([text], inside).map(({ kind, text: one }) => (kind === "text" ? one : [one]))

describe("think tags", () => {
  it("text between them is reasoning, and blanks around them belong to neither", () => {
    expect(sayText("<think>a</think>b")).toEqual([["a"], "b"])
    expect(sayText("\n<think>\na b\n\n</think>\n\nc ")).toEqual([["a b"], "c "])
    expect(sayText("<think>\n\n</think>\n\nanswer")).toEqual(["answer"])
    expect(sayText("<think>a</think> <think>b</think>c")).toEqual([["ab"], "c"])
  })

  it("a text without them is untouched", () => {
    for (const text of ["", " ", "\n hello ", "<", "<thin", "<thinking>", "a < b", "a</think>b"]) {
      expect(sayText(text).join("")).toBe(text)
    }
  })

  it("a tag inside an answer is part of it", () => {
    expect(sayText("Use <think>x</think>.")).toEqual(["Use <think>x</think>."])
    expect(sayText("<think>a</think>Use <think>.")).toEqual([["a"], "Use <think>."])
  })

  it("reasoning that is never closed stays reasoning", () => {
    expect(sayText("<think>a </th")).toEqual([["a </th"]])
    expect(sayText("<think>a\n")).toEqual([["a"]])
  })

  it("the template may have written the opening tag", () => {
    expect(sayText("a</think>b", true)).toEqual([["a"], "b"])
    expect(sayText("\n</think>\nb", true)).toEqual(["b"])
    expect(sayText("a", true)).toEqual([["a"]])
  })

  it("any chunking gives the same", () => {
    const token = fc.constantFrom("<think>", "</think>", "<thi", "nk>", "</", "think", "a", " ", "\n", "<", ">", "é👋")
    fc.assert(
      fc.property(fc.array(token, { maxLength: 20 }), fc.array(fc.nat(100)), fc.boolean(), (tokens, cuts, inside) => {
        const text = tokens.join("")
        const at = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].sort((a, b) => a - b)
        const chunks = at.slice(1).map((end, index) => text.slice(at[index], end))
        expect(splitTags(chunks, inside)).toEqual(splitTags([text], inside))
      }),
      { numRuns: scaled(2000) }
    )
  })

  it("reads decided text only once", () => {
    for (const piece of ["< ", " ", "a"]) {
      const splitter = makeThinkSplitter(thinkTags)
      splitter.push("<think>")
      // Quadratic work would be stopped by the test's time limit.
      for (let index = 0; index < 200_000; index++) splitter.push(piece)
      expect(splitter.end()).toEqual([])
    }
    const splitter = makeThinkSplitter(thinkTags)
    for (let index = 0; index < 200_000; index++) splitter.push(" ")
    expect(splitter.end()).toEqual([{ kind: "text", text: " ".repeat(200_000) }])
  })
})
