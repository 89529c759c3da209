import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Content, Message } from "effect-deepagents"
import * as fc from "fast-check"
import { citationsOf } from "../../src/models/internal/turn/citations.ts"
import { claude, message as anthropicMessage, request as anthropicRequest, turn } from "./anthropic/asking.ts"
import { ask, compatible, request, responses } from "./openai/asking.ts"
import { chunk, message, responseEvents } from "./openai/wire.ts"
import * as Anthropic from "./servers/anthropic.ts"
import * as OpenAi from "./servers/openai.ts"

const text = "😀 Ulm lies on the Danube."
const hello = request([Message.human("hello")])

const citationsIn = (answer: Message.AiMessage | undefined): ReadonlyArray<Content.Citation> =>
  (answer?.content ?? []).flatMap((block) => (block.type === "text" ? (block.citations ?? []) : []))

const passages = (answer: Message.AiMessage | undefined) =>
  citationsIn(answer).map(({ end, source, start }) => [source.url ?? source.key, text.slice(start, end)])

const nested = {
  type: "url_citation" as const,
  url_citation: { url: "https://example.com/ulm", title: "Ulm", start_index: 2, end_index: 5 }
}

describe("citations of providers", () => {
  it.live("of OpenAI's Responses API: passages are in characters, also beyond the first plane", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      const annotations = [
        { type: "url_citation" as const, url: "https://example.com/ulm", title: "Ulm", start_index: 2, end_index: 5 },
        { type: "url_citation" as const, url: "https://example.com/x", title: "X", start_index: 5, end_index: 99 },
        { type: "file_citation" as const, file_id: "file_1", filename: "a.pdf", index: 3 }
      ]
      const said = message(text, { content: [{ type: "output_text", text, annotations, logprobs: [] }] })
      server.reply(OpenAi.events(responseEvents([said])))
      const { message: answer } = yield* ask(responses(server), hello)
      assert.deepStrictEqual(passages(answer), [
        ["https://example.com/ulm", "Ulm"],
        // A passage that is not in the text becomes the whole text.
        ["https://example.com/x", text],
        ["file_1", text]
      ])
    })
  )

  it.live("of servers that speak Chat Completions, in the delta or beside it", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      server.reply(
        OpenAi.chunks([
          chunk({ role: "assistant", content: text }),
          chunk({ annotations: [nested] }),
          chunk({}, "stop")
        ]),
        OpenAi.chunks([
          { ...chunk({ content: text }), search_results: [{ title: "Ulm", url: "https://example.com/ulm" }] },
          { ...chunk({}, "stop"), search_results: [{ title: "Ulm", url: "https://example.com/ulm" }] }
        ])
      )
      assert.deepStrictEqual(passages((yield* ask(compatible(server), hello)).message), [
        ["https://example.com/ulm", "Ulm"]
      ])
      assert.deepStrictEqual(passages((yield* ask(compatible(server), hello)).message), [
        ["https://example.com/ulm", text]
      ])
    })
  )

  it.live("of Anthropic: pages, characters, blocks, search results", () =>
    Effect.gen(function* () {
      const citations = [
        {
          type: "web_search_result_location",
          url: "https://example.com/ulm",
          title: "Ulm",
          cited_text: "on the Danube"
        },
        {
          type: "page_location",
          document_index: 0,
          document_title: "Report",
          start_page_number: 3,
          end_page_number: 5
        },
        { type: "char_location", document_index: 1, document_title: null, start_char_index: 0, end_char_index: 1 },
        { type: "search_result_location", source: "kb/1", title: "One", start_block_index: 0, end_block_index: 1 }
      ]
      const server = yield* Anthropic.serve(Anthropic.stream(Anthropic.answer([{ text, citations }])))
      const answer = anthropicMessage(yield* turn(claude(server), anthropicRequest()))
      assert.deepStrictEqual(
        citationsIn(answer).map(({ locator, quote, source }) => [source.key, source.title, locator, quote]),
        [
          ["https://example.com/ulm", "Ulm", undefined, "on the Danube"],
          ["Report", "Report", "pages 3–4", undefined],
          ["document 2", undefined, "character 0", undefined],
          ["kb/1", "One", "block 0", undefined]
        ]
      )
    })
  )

  it("with any value in the place of an annotation, no citation is without a source or outside of the text", () => {
    const wire = fc.dictionary(
      fc.constantFrom("type", "url", "title", "start_index", "end_index", "url_citation", "file_id", "cited_text", "x"),
      fc.oneof(fc.jsonValue(), fc.nat(30), fc.constantFrom("url_citation", "__proto__", "https://example.com"))
    )
    fc.assert(
      fc.property(fc.array(wire), fc.string({ unit: "binary" }), (wires, said) => {
        for (const { end = 0, source, start = 0 } of citationsOf(wires as never, said)) {
          assert.isNotEmpty(source.key)
          assert.isTrue(start <= end && end <= said.length)
        }
      })
    )
  })
})
