import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { Content, type Json, Message } from "effect-deepagents"
import * as Prompt from "effect-deepagents/models/bridges/EffectAiPrompt"
import { Prompt as AiPrompt } from "effect/ai"
import * as fc from "fast-check"

const words = fc.string({ minLength: 1, unit: "grapheme" }).map((text) => `x${text}`)

const json = fc.jsonValue({ maxDepth: 3 }).map((value): Json.Json => JSON.parse(JSON.stringify(value)))

const args = fc.dictionary(
  fc.string({ minLength: 1 }).filter((key) => key !== "__proto__"),
  json,
  { maxKeys: 4 }
)

/** Data that a provider behind effect/ai may have attached. */
const data = fc.option(fc.record({ "effect-ai": fc.record({ acme: args }) }), { nil: undefined })

const withData = <A extends object>(block: A, providerData: Json.JsonObject | undefined) =>
  providerData === undefined ? block : { ...block, providerData }

const base64 = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString("base64"))

const text = fc.tuple(words, data).map(([value, own]): Content.Block => withData(Content.text(value), own))

const media: fc.Arbitrary<Content.Block> = fc.oneof(
  base64.map((data) => Content.image({ base64: data, mimeType: "image/png" })),
  fc.webUrl().map((url) => Content.image({ url: new URL(url).href })),
  fc.stringMatching(/^file-[a-z0-9]{3,20}$/).map((fileId) => Content.image({ fileId })),
  base64.map((data) => Content.file({ base64: data, mimeType: "application/pdf", name: "a.pdf" })),
  fc.webUrl().map((url) => Content.file({ url: new URL(url).href, name: "a.pdf" })),
  base64.map((data) => Content.file({ base64: data, mimeType: "audio/wav" }))
)

/** Reasoning always names its provider; reasoning without attached data is another provider's. */
const reasoning = fc
  .tuple(words, args)
  .map(([value, own]): Content.Block => Content.reasoning(value, { "effect-ai": { acme: own } }))

const name = fc.stringMatching(/^[a-z_]{1,12}$/)

interface Call {
  readonly name: string
  readonly arguments: Json.JsonObject
  readonly raw: string | undefined
  readonly own: Json.JsonObject | undefined
  readonly result: ReadonlyArray<Content.Block>
  readonly isError: boolean
}

const call: fc.Arbitrary<Call> = fc.record({
  name,
  arguments: args,
  raw: fc.option(fc.string(), { nil: undefined, freq: 4 }),
  own: data,
  result: fc.array(text, { minLength: 1, maxLength: 3 }),
  isError: fc.boolean()
})

const round = fc
  .record({
    said: fc.array(fc.oneof(text, reasoning), { maxLength: 3 }),
    calls: fc.array(call, { maxLength: 3 })
  })
  .filter(({ calls, said }) => calls.length > 0 || said.some((block) => block.type === "text"))

const human = fc.array(fc.oneof(text, media), { minLength: 1, maxLength: 3 }).map((content) => Message.human(content))

const system = words.map((value) => Message.system(value))

type Piece = Message.Message | { readonly said: ReadonlyArray<Content.Block>; readonly calls: ReadonlyArray<Call> }

/** A history as the loop makes them, with every call answered behind its message, in order. */
const assemble = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Message.Message> => {
  let count = 0
  return pieces.flatMap((piece): ReadonlyArray<Message.Message> => {
    if ("role" in piece) return [piece]
    const calls = [
      ...piece.calls.filter(({ raw }) => raw === undefined),
      ...piece.calls.filter(({ raw }) => raw !== undefined)
    ].map((one) => ({ ...one, id: `call-${++count}` }))
    return [
      Message.ai(piece.said, {
        toolCalls: calls.flatMap((one) =>
          one.raw === undefined ? [withData({ id: one.id, name: one.name, arguments: one.arguments }, one.own)] : []
        ),
        malformedToolCalls: calls.flatMap((one) =>
          one.raw === undefined ? [] : [{ id: one.id, name: one.name, raw: one.raw, problem: "no JSON" }]
        )
      }),
      ...calls.map((one) => Message.tool(one.result, { toolCallId: one.id, toolName: one.name, isError: one.isError }))
    ]
  })
}

const history = fc.array(fc.oneof(human, system, round), { maxLength: 8 }).map(assemble)

/** Anything at all: orphans, missing answers, empty and foreign content, doubled ids. */
const anyMessage: fc.Arbitrary<Message.Message> = fc.oneof(
  human,
  system,
  fc
    .array(
      fc.oneof(
        text,
        media,
        reasoning,
        fc.constant(Content.text("")),
        words.map((w) => Content.reasoning(w))
      ),
      { maxLength: 3 }
    )
    .chain((content) =>
      fc
        .array(fc.record({ id: fc.constantFrom("a", "b", "c ?", ""), name, arguments: args }), { maxLength: 3 })
        .map((toolCalls) => Message.ai(content, { toolCalls }))
    ),
  fc
    .tuple(fc.constantFrom("a", "b", "c ?", "", "z"), fc.array(fc.oneof(text, media), { maxLength: 2 }))
    .map(([toolCallId, content]) => Message.tool(content, { toolCallId, toolName: "t" }))
)

/** The parts of a message that a prompt can carry. */
const essence = (message: Message.Message) => ({
  role: message.role,
  content: message.content,
  ...(message.role === "ai"
    ? {
        toolCalls: message.toolCalls,
        malformed: message.malformedToolCalls.map(({ id, name, raw }) => ({ id, name, raw }))
      }
    : {}),
  ...(message.role === "tool"
    ? { toolCallId: message.toolCallId, toolName: message.toolName, isError: message.isError }
    : {})
})

const decodePrompt = Schema.decodeUnknownSync(AiPrompt.Prompt)
const encodePrompt = Schema.encodeSync(AiPrompt.Prompt)

describe("messages as a prompt, and back", () => {
  it("are the same messages, as far as a prompt can say it", () => {
    fc.assert(
      fc.property(history, (messages) => {
        expect(Prompt.toMessages(Prompt.fromMessages(messages)).map(essence)).toEqual(messages.map(essence))
      })
    )
  })

  it("survive the JSON in which effect/ai keeps prompts", () => {
    fc.assert(
      fc.property(history, (messages) => {
        const prompt = decodePrompt(JSON.parse(JSON.stringify(encodePrompt(Prompt.fromMessages(messages)))))
        expect(Prompt.toMessages(prompt).map(essence)).toEqual(messages.map(essence))
      })
    )
  })

  it("give the same prompt once more, for any history", () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 8 }), (messages) => {
        const prompt = Prompt.fromMessages(messages)
        expect(Prompt.fromMessages(Prompt.toMessages(prompt)).content).toEqual(prompt.content)
      })
    )
  })

  it("invariant 1: any history gives a prompt in which every call has its one result behind it, in order", () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 10 }), (messages) => {
        const { content } = Prompt.fromMessages(messages)
        const seen = new Set<string>()
        content.forEach((message, index) => {
          if (message.role !== "system") expect(message.content.length).toBeGreaterThan(0)
          if (message.role === "tool") expect(content[index - 1]?.role).toBe("assistant")
          if (message.role !== "assistant") return
          const ids = message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))
          for (const id of ids) {
            expect(seen.has(id)).toBe(false)
            seen.add(id)
          }
          const next = content[index + 1]
          const answered = next?.role === "tool" ? next.content.flatMap((part) => ("id" in part ? [part.id] : [])) : []
          expect(answered).toEqual(ids)
        })
      })
    )
  })
})

describe("a prompt as messages", () => {
  it("tells media by their types", () => {
    const png = (data: string | Uint8Array | URL) => AiPrompt.filePart({ mediaType: "image/png", data })
    const long = Buffer.alloc(200, 1).toString("base64")
    const prompt = AiPrompt.fromMessages([
      AiPrompt.userMessage({
        content: [
          png(new Uint8Array([1, 2, 3])),
          png(new URL("data:image/gif;base64,AQID")),
          png("https://example.com/a.png"),
          png("file-1"),
          png(long)
        ]
      })
    ])
    expect(Prompt.toMessages(prompt)[0]?.content).toEqual([
      Content.image({ base64: "AQID", mimeType: "image/png" }),
      Content.image({ base64: "AQID", mimeType: "image/gif" }),
      Content.image({ url: "https://example.com/a.png" }),
      Content.image({ fileId: "file-1" }),
      Content.image({ base64: long, mimeType: "image/png" })
    ])
  })

  it("keeps params that are no object as a malformed call, and results that are no text as JSON", () => {
    const messages = Prompt.toMessages(
      AiPrompt.make([
        { role: "assistant", content: [{ type: "tool-call", id: "1", name: "t", params: "oops" }] },
        { role: "tool", content: [{ type: "tool-result", id: "1", name: "t", isFailure: true, result: [1, null] }] }
      ])
    )
    expect(messages.map(essence)).toMatchObject([
      { role: "ai", malformed: [{ id: "1", name: "t", raw: "oops" }] },
      { role: "tool", toolCallId: "1", isError: true, content: [Content.text("[1,null]")] }
    ])
  })

  it("keeps a provider's own calls in their places", () => {
    const prompt = AiPrompt.make([
      {
        role: "assistant",
        content: [
          { type: "text", text: "Searching" },
          { type: "tool-call", id: "1", name: "search", params: { q: "x" }, providerExecuted: true },
          {
            type: "tool-result",
            id: "1",
            name: "search",
            isFailure: false,
            result: { hits: 1 },
            providerExecuted: true
          },
          { type: "text", text: "Found" }
        ]
      }
    ])
    const [message] = Prompt.toMessages(prompt)
    expect(message?.content).toEqual([Content.text("Searching"), Content.text("Found")])
    expect(Prompt.fromMessages([message!]).content).toEqual(prompt.content)
    // A middleware may have taken blocks out since, or put some in.
    const showTexts = (...texts: ReadonlyArray<string>) =>
      Prompt.fromMessages([{ ...message!, content: texts.map(Content.text) }]).content[0]?.content
    const ran = [
      { type: "tool-call", id: "1" },
      { type: "tool-result", id: "1" }
    ]
    expect(showTexts("a")).toMatchObject([{ text: "a" }, ...ran])
    expect(showTexts("a", "b", "c")).toMatchObject([{ text: "a" }, ...ran, { text: "b" }, { text: "c" }])
  })
})
