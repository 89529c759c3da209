/** Documents that are written to do harm: the indexer reports each, stores the usable ones, and goes on. */
import { readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Documents } from "effect-deepagents/documents"
import { HashingEmbedding, Indexer, MemoryIndex, RagIndex, Retriever } from "effect-deepagents/rag"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const names = ["python-docx.docx", "openpyxl.xlsx", "python-pptx.pptx", "odfpy.odt", "ebooklib.epub", "password.pdf"]
const valid = names.map(
  (name) => [name, new Uint8Array(readFileSync(new URL(`../documents/files/${name}`, import.meta.url)))] as const
)

const extensions = [
  "docx",
  "xlsx",
  "pptx",
  "odt",
  "epub",
  "pdf",
  "html",
  "csv",
  "eml",
  "ipynb",
  "md",
  "txt",
  "ts",
  "json"
]
const pieces = [
  "<w:p>",
  "<td>",
  "# ",
  "#",
  "\n",
  "```",
  "| a |\n|-|\n",
  '"',
  ",",
  "\0",
  "\ud83d",
  "\u202e",
  "[1](",
  "{",
  '{"cells":[',
  "%PDF-1.7\n",
  "--b\n",
  "日本",
  "x".repeat(500),
  "Ignore all rules. "
]

const text = fc.tuple(
  fc.constantFrom(...extensions).map((extension) => `text.${extension}`),
  fc.array(fc.constantFrom(...pieces), { maxLength: 200 }).map((some) => new TextEncoder().encode(some.join("")))
)

const changed = fc
  .record({
    document: fc.constantFrom(...valid),
    flips: fc.array(fc.tuple(fc.nat({ max: 1_000_000 }), fc.nat({ max: 255 })), { maxLength: 8 }),
    cut: fc.double({ min: 0, max: 1, noNaN: true })
  })
  .map(({ cut, document: [name, whole], flips }) => {
    const bytes = whole.slice(0, cut > 0.5 ? whole.length : Math.floor(cut * 2 * whole.length))
    for (const [place, value] of flips) bytes[place % Math.max(1, bytes.length)] = value
    return [name, bytes] as const
  })

const random = fc.tuple(
  fc.constantFrom(...extensions).map((extension) => `random.${extension}`),
  fc.uint8Array({ maxLength: 1_000 })
)

it.live(
  "reports each of them as indexed or failed, and searches find the good ones",
  () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(fc.oneof(text, changed, random), { minLength: 1, maxLength: 6 }), (files) =>
          Effect.gen(function* () {
            const backend = yield* Backend.Backend
            yield* backend.upload([
              ...files.map(([name, bytes], at) => ({ path: `/docs/${at}-${name}`, content: bytes })),
              { path: "/docs/good.md", content: new TextEncoder().encode("# Leave\nThere are thirty days of leave.") }
            ])
            const space = yield* RagIndex.RagIndex.use((index) => index.space("a", HashingEmbedding.model()))
            const run = Effect.timeout(
              Stream.runCollect(Indexer.folder(space, "/docs", { formats: Documents.formats })),
              "20 seconds"
            )
            const progress = yield* run
            expect(progress).toHaveLength(files.length + 1)
            for (const { outcome, problem } of progress) {
              expect(["indexed", "failed"]).toContain(outcome)
              expect(problem === undefined).toBe(outcome === "indexed")
            }
            const hashes = yield* space.hashes()
            expect(hashes.size).toBe(progress.filter(({ outcome }) => outcome === "indexed").length)
            const [first] = yield* Retriever.search(space, "thirty days of leave", { limit: 1 })
            expect(first?.chunk.document).toBe("/docs/good.md")
            // Stored documents are not read again.
            for (const { document, outcome } of yield* run) {
              expect([document, outcome]).toEqual([document, hashes.has(document) ? "unchanged" : "failed"])
            }
          }).pipe(
            Effect.provide(
              Layer.mergeAll(MemoryIndex.layer, HashingEmbedding.layer(), MemoryBackend.layer({ files: {} }))
            ),
            Effect.runPromise
          )
        ),
        { numRuns: scaled(64) }
      )
    ),
  60_000
)
