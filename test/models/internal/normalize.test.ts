import { describe, expect, it } from "@effect/vitest"
import { Content, Message } from "effect-deepagents"
import fc from "fast-check"
import type { Dialect } from "../../../src/models/internal/turn/dialect.ts"
import { makeMerger, makeNormalizer, type Turn } from "../../../src/models/internal/turn/normalize.ts"
import { scaled } from "../../scale.ts"
import { halves } from "./halves.ts"
import * as histories from "./histories.ts"

const plain: Dialect = {
  provider: "mine",
  systemMessages: "keep",
  reasoning: "own",
  media: () => true,
  toolMedia: "inline",
  humanFirst: false,
  humanLast: false,
  callIdLength: 40
}

const dialects: fc.Arbitrary<Dialect> = fc.record({
  provider: fc.constant("mine"),
  systemMessages: fc.constantFrom<Array<Dialect["systemMessages"]>[number]>("keep", "human", "fold"),
  reasoning: fc.constantFrom<Array<Dialect["reasoning"]>[number]>("own", "all", "none"),
  media: fc.constantFrom<Array<Dialect["media"]>[number]>(
    () => true,
    () => false,
    (block, role) => role === "human" && block.type === "image"
  ),
  toolMedia: fc.constantFrom<Array<Dialect["toolMedia"]>[number]>("inline", "after"),
  humanFirst: fc.boolean(),
  humanLast: fc.boolean(),
  callIdLength: fc.constantFrom(9, 40, 64)
})

const own: histories.Own = {
  block: fc.constant({ mine: { signature: "mine" } }),
  call: fc.constant({ mine: { index: 1 } }),
  message: fc.constant({ mine: { id: "m" } })
}

const normalize = (dialect: Partial<Dialect>, history: ReadonlyArray<Message.Message>) =>
  makeNormalizer({ ...plain, ...dialect })(history)

const contents = (turn: Turn): ReadonlyArray<Content.Block> =>
  turn.role === "system"
    ? [Content.text(turn.text)]
    : turn.role === "human"
      ? turn.content
      : [...turn.content, ...turn.calls.flatMap((call) => call.answer.content)]

const anyCase = fc.tuple(dialects, histories.history(own))

describe("normalize", () => {
  it("leaves no empty content, no repeated or unfit call id, no call without an answer", () => {
    fc.assert(
      fc.property(anyCase, ([dialect, history]) => {
        const { system, turns } = normalize(dialect, history)
        expect(turns.length).toBeGreaterThan(0)
        const ids = turns.flatMap((turn) => (turn.role === "ai" ? turn.calls.map((call) => call.id) : []))
        expect(new Set(ids).size).toBe(ids.length)
        for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/)
        for (const id of ids) expect(id.length).toBeLessThanOrEqual(dialect.callIdLength)
        for (const said of system) expect(said.trim()).not.toBe("")
        for (const turn of turns) {
          for (const block of contents(turn)) {
            if (block.type === "text") expect(block.text.trim()).not.toBe("")
            if (block.type === "text") expect(block.text).not.toMatch(/\p{Surrogate}/u)
          }
          if (turn.role === "human") expect(turn.content.length).toBeGreaterThan(0)
          if (turn.role !== "ai") continue
          if (turn.stopReason !== "pause" && turn.calls.length === 0) expect(Content.toText(turn.content)).not.toBe("")
          for (const call of turn.calls) expect(call.answer.content.length).toBeGreaterThan(0)
        }
      }),
      { numRuns: scaled(1000) }
    )
  })

  it("sends only parts that the dialect reads", () => {
    fc.assert(
      fc.property(anyCase, ([dialect, history]) => {
        const { turns } = normalize(dialect, history)
        if (dialect.systemMessages !== "keep") expect(turns.some((turn) => turn.role === "system")).toBe(false)
        for (const turn of turns) {
          if (turn.role === "system") continue
          for (const block of turn.content) {
            if (block.type === "image" || block.type === "file") expect(dialect.media(block, "human")).toBe(true)
            if (block.type !== "reasoning") continue
            expect(dialect.reasoning).not.toBe("none")
            if (dialect.reasoning === "own") expect(block.providerData).toHaveProperty("mine")
          }
          if (turn.role !== "ai") continue
          for (const block of turn.calls.flatMap((call) => call.answer.content)) {
            if (block.type !== "text") expect(dialect.toolMedia).toBe("inline")
            if (block.type !== "text") expect(dialect.media(block, "tool")).toBe(true)
          }
        }
      }),
      { numRuns: scaled(1000) }
    )
  })

  it("begins and ends with a human turn if the provider insists on it", () => {
    fc.assert(
      fc.property(anyCase, ([dialect, history]) => {
        const { turns } = normalize({ ...dialect, humanFirst: true, humanLast: true }, history)
        expect(turns.find((turn) => turn.role !== "system")?.role).toBe("human")
        const last = turns.at(-1)
        if (last?.role === "ai") expect(last.calls.length > 0 || last.stopReason === "pause").toBe(true)
      })
    )
  })

  it("no text, key or argument has half of a surrogate pair, and no data is damaged", () => {
    const withoutEmpty = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (key, item: unknown) => (key === "providerData" ? undefined : item)))
    fc.assert(
      fc.property(dialects, histories.history(own), (dialect, history) => {
        const { system, turns } = makeNormalizer(dialect)(history)
        expect(halves(withoutEmpty([system, turns]))).toEqual([])
        const shown = turns.flatMap((turn) => (turn.role === "human" ? turn.content : []))
        for (const block of shown) {
          if (block.type !== "text" && block.source.kind === "base64")
            expect(block.source.data).toMatch(/^AA(?:AA|==)$/)
        }
      }),
      { numRuns: scaled(2_000) }
    )
  })

  it("a normaliser that saw the history grow, shrink or be rewritten returns the same as a fresh one", () => {
    const edits = fc.array(fc.tuple(fc.nat(14), fc.array(histories.message(own), { maxLength: 4 })), { maxLength: 6 })
    fc.assert(
      fc.property(dialects, histories.history(own), edits, (dialect, first, changes) => {
        const remembering = makeNormalizer(dialect)
        let history = first
        expect(remembering(history)).toEqual(normalize(dialect, history))
        for (const [keep, added] of changes) {
          history = [...history.slice(0, keep), ...added]
          expect(remembering(history)).toEqual(normalize(dialect, history))
        }
      }),
      { numRuns: scaled(500) }
    )
  })

  it("keeps the identity of the turns before the last one while the history grows (invariant 15)", () => {
    const history: Array<Message.Message> = []
    const grown = makeNormalizer(plain)
    let before: ReadonlyArray<Turn> = []
    for (let round = 0; round < 50; round++) {
      history.push(
        Message.human(`question ${round}`),
        Message.ai("", { toolCalls: [{ id: "call_0", name: "search", arguments: { round } }] }),
        Message.tool("found", { toolCallId: "call_0", toolName: "search" })
      )
      const { turns } = grown(history)
      expect(turns.length).toBe(2 * (round + 1))
      for (let index = 0; index < before.length - 1; index++) expect(turns[index]).toBe(before[index])
      before = turns
    }
  })

  it("zips answers with their calls in call order, and drops the orphans (invariant 1)", () => {
    const { turns } = normalize({}, [
      Message.tool("nobody asked", { toolCallId: "a", toolName: "search" }),
      Message.human("go"),
      Message.ai("", {
        toolCalls: [
          { id: "a", name: "search", arguments: {} },
          { id: "b", name: "search", arguments: {} },
          { id: "c", name: "search", arguments: {} }
        ],
        malformedToolCalls: [{ id: "d", raw: "{", problem: "cut" }]
      }),
      Message.tool("for b", { toolCallId: "b", toolName: "search" }),
      Message.tool("for a", { toolCallId: "a", toolName: "search", isError: true }),
      Message.tool("for a again", { toolCallId: "a", toolName: "search" }),
      Message.tool("for nobody", { toolCallId: "z", toolName: "search" }),
      Message.human("and?"),
      Message.tool("too late", { toolCallId: "c", toolName: "search" })
    ])
    expect(turns.map((turn) => turn.role)).toEqual(["human", "ai", "human"])
    const calls = turns[1]?.role === "ai" ? turns[1].calls : []
    expect(calls.map(({ answer, id, raw }) => [id, Content.toText(answer.content), answer.isError, raw])).toEqual([
      ["a", "for a", true, undefined],
      ["b", "for b", false, undefined],
      ["c", "No result of this call is known: the run ended before it was recorded.", true, undefined],
      ["d", "No result of this call is known: the run ended before it was recorded.", true, "{"]
    ])
    expect(calls.map((call) => call.answer.index)).toEqual([4, 3, undefined, undefined])
  })

  it("gives an answer to one call only, when two calls have one id", () => {
    const call = { id: "a", name: "search", arguments: {} }
    const { turns } = normalize({}, [
      Message.ai("", { toolCalls: [call, call] }),
      Message.tool("found", { toolCallId: "a", toolName: "search" })
    ])
    const calls = turns[0]?.role === "ai" ? turns[0].calls : []
    expect(calls.map(({ answer, id }) => [id, answer.isError])).toEqual([
      ["a", false],
      ["a_2", true]
    ])
  })

  it("folds system messages at the start, and shows later ones in their places", () => {
    const { system, turns } = normalize({ systemMessages: "fold" }, [
      Message.system("first"),
      Message.system("second"),
      Message.human("hello"),
      Message.system("third")
    ])
    expect(system).toEqual(["first", "second"])
    expect(turns.map((turn) => [turn.role, turn.role === "human" ? Content.toText(turn.content) : ""])).toEqual([
      ["human", "hello"],
      ["human", "<system>\nthird\n</system>"]
    ])
  })

  it("reports unsendable parts, and moves pictures out of tool results if necessary", () => {
    const picture = Content.image({ base64: "AAAA", mimeType: "image/png" })
    const clip = Content.file({ url: "https://example.com/clip.mp4", name: "clip" })
    const { turns } = normalize({ media: (block) => block.type === "image", toolMedia: "after" }, [
      Message.human([clip]),
      Message.ai("", { toolCalls: [{ id: "a", name: "screenshot", arguments: {} }] }),
      Message.tool([Content.text("taken"), picture], { toolCallId: "a", toolName: "screenshot" })
    ])
    expect(turns[0]?.role === "human" ? turns[0].content : []).toEqual([
      Content.text("[A file was here, clip (https://example.com/clip.mp4). It could not be passed on to this model.]")
    ])
    expect(turns[1]?.role === "ai" ? turns[1].calls[0]?.answer.content : []).toEqual([
      Content.text("taken"),
      Content.text("(What the tool gave is in the next message.)")
    ])
    expect(turns[2]?.role === "human" ? turns[2].content : []).toEqual([
      Content.text("From the result of screenshot:"),
      picture
    ])
  })

  it("merging joins neighbours of one role and loses nothing", () => {
    fc.assert(
      fc.property(anyCase, ([dialect, history]) => {
        const { turns } = normalize(dialect, history)
        const merged = makeMerger(() => true)(turns).output
        expect(merged.flatMap(contents)).toEqual(turns.flatMap(contents))
        merged.forEach((turn, index) => {
          const next = merged[index + 1]
          if (turn.role === "human") expect(next?.role).not.toBe("human")
          if (turn.role === "ai" && next?.role === "ai") expect(turn.calls.length).toBeGreaterThan(0)
        })
      })
    )
  })
})
