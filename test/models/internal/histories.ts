/** Histories as they come out of compaction, crashes, other providers and bugs: nothing about them can be relied on. */
import { Content, type Json, Message } from "effect-deepagents"
import fc from "fast-check"

/** Text that is empty, blank, cut in the middle of a pair, or says anything. */
export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "grapheme", maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom("", " ", "\n\t", "\uD83D", "a\uDC00b", "<think>", "\u0000") }
)

/** A few ids only, so that they collide, and some that no provider accepts. */
const callId: fc.Arbitrary<string> = fc.constantFrom(
  "a",
  "b",
  "call_1",
  "toolu_01",
  "",
  "with space",
  "é:1",
  "x".repeat(200)
)

const toolName: fc.Arbitrary<string> = fc.constantFrom(
  "search",
  "read_file",
  "server.tool",
  "naïve name",
  "cut \uD83D",
  "",
  "n".repeat(200)
)

const source: fc.Arbitrary<Content.Source> = fc.oneof(
  fc
    .constantFrom(
      "https://example.com/a.png",
      "data:image/png;base64,AAAA",
      "data:image/png;base64,A\uD83D",
      "https://a/\uDC00",
      "file:///etc/passwd",
      ""
    )
    .map((url) => ({
      kind: "url" as const,
      url
    })),
  fc
    .constantFrom(
      "image/png",
      "image/tiff",
      "application/pdf",
      "audio/wav",
      "audio/mpeg",
      "text/plain",
      "video/mp4",
      ""
    )
    .chain((mimeType) =>
      fc
        .constantFrom("AAAA", "AA==", "AAA", "not base64!", "")
        .map((data) => ({ kind: "base64" as const, data, mimeType }))
    ),
  fc.constantFrom("file-1", "").map((fileId) => ({ kind: "fileId" as const, fileId }))
)

/** Data that a provider attached; the test names the provider whose data is well formed. */
export interface Own {
  readonly block: fc.Arbitrary<Json.JsonObject>
  readonly call: fc.Arbitrary<Json.JsonObject>
  readonly message: fc.Arbitrary<Json.JsonObject>
}

const none: Own = { block: fc.constant({}), call: fc.constant({}), message: fc.constant({}) }

const foreign: fc.Arbitrary<Json.JsonObject> = fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
  {},
  { other: { signature: "s" } },
  { other: "text" }
)

const data = (own: fc.Arbitrary<Json.JsonObject>): fc.Arbitrary<{ readonly providerData?: Json.JsonObject }> =>
  fc.oneof(
    fc.constant({}),
    fc.tuple(foreign, own).map(([one, two]) => ({ providerData: Object.assign({}, one, two) }))
  )

const block = (own: Own): fc.Arbitrary<Content.Block> => {
  const name = fc.constantFrom<ReadonlyArray<{ readonly name?: string }>[number]>(
    {},
    { name: "report.pdf" },
    { name: "cut \uD83D" }
  )
  return fc.oneof(
    { weight: 5, arbitrary: fc.tuple(text, data(own.block)).map(([value, it]) => ({ ...Content.text(value), ...it })) },
    {
      weight: 2,
      arbitrary: fc.tuple(text, data(own.block)).map(([value, it]) => ({ ...Content.reasoning(value), ...it }))
    },
    { weight: 1, arbitrary: source.map((at) => ({ type: "image" as const, source: at })) },
    { weight: 1, arbitrary: fc.tuple(source, name).map(([at, it]) => ({ type: "file" as const, source: at, ...it })) }
  )
}

const args: fc.Arbitrary<Json.JsonObject> = fc.dictionary(
  fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom("\uD83D", "__proto__")),
  fc.oneof(
    fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json.JsonObject[string]>,
    fc.constantFrom<Json.Json>("\uDC00", ["\uD83D"], { "\uD83D": "x" })
  ),
  { maxKeys: 3, noNullPrototype: true }
)

/** One message of any role. */
export const message = (own: Own = none): fc.Arbitrary<Message.Message> => {
  const content = fc.array(block(own), { maxLength: 3 })
  const toolCalls = fc.array(
    fc
      .tuple(callId, toolName, args, data(own.call))
      .map(([id, name, given, it]) => ({ id, name, arguments: given, ...it })),
    { maxLength: 3 }
  )
  const malformedToolCalls = fc.array(
    fc
      .tuple(callId, fc.option(toolName, { nil: undefined }), text)
      .map(([id, name, raw]) => ({ id, raw, problem: "not JSON", ...(name === undefined ? {} : { name }) })),
    { maxLength: 1 }
  )
  const stopReason = fc.constantFrom<Message.TurnStop>("stop", "toolCalls", "length", "refusal", "pause", "interrupted")
  return fc.oneof(
    { weight: 1, arbitrary: content.map((blocks) => Message.system(blocks)) },
    { weight: 3, arbitrary: content.map((blocks) => Message.human(blocks)) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(content, toolCalls, malformedToolCalls, stopReason, data(own.message))
        .map(([blocks, good, bad, stop, it]) =>
          Message.ai(blocks, { toolCalls: good, malformedToolCalls: bad, stopReason: stop, ...it })
        )
    },
    {
      weight: 5,
      arbitrary: fc
        .tuple(content, callId, toolName, fc.boolean())
        .map(([blocks, toolCallId, name, isError]) => Message.tool(blocks, { toolCallId, toolName: name, isError }))
    }
  )
}

/** Any history. `own` makes provider data of the provider under test. */
export const history = (own?: Own): fc.Arbitrary<ReadonlyArray<Message.Message>> =>
  fc.array(message(own), { maxLength: 14 })
