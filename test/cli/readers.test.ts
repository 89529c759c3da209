/** The program holds parts of the packages that read pages and PDFs: its threads read the same as the library's. */
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Worker } from "node:worker_threads"
import { brotliCompressSync } from "node:zlib"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PDFDocument } from "pdf-lib"
import * as make from "../documents/make.ts"
import { build } from "./built.ts"

let folder = ""
beforeAll(() => {
  const program = build()
  program.remove()
  folder = dirname(program.bin)
}, 240_000)

/** The answers of a thread to messages, one after another. */
const ask = (file: string, messages: ReadonlyArray<object>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Worker(file, { execArgv: ["--conditions=@effect-deepagents/source"] })),
    (worker) =>
      Effect.forEach(messages, (message, id) =>
        Effect.promise(async () => {
          const answer = once(worker, "message")
          worker.postMessage({ id, ...message })
          return answer
        })
      ),
    (worker) => Effect.promise(() => worker.terminate())
  )

/** The answers of both threads, which have to be the same. */
const askBoth = Effect.fnUntraced(function* (name: string, source: string, messages: ReadonlyArray<object>) {
  const wanted = yield* ask(resolve(source), messages)
  assert.deepStrictEqual(yield* ask(join(folder, `${name}.js`), messages), wanted)
  return wanted
})

const readPdf = (bytes: Uint8Array, pages: number, password?: string) =>
  askBoth("pdf-reader", "src/documents/internal/pdf/pdfWorker.ts", [
    { bytes, password },
    ...Array.from({ length: pages }, (_, page) => ({ page: page + 1 }))
  ])

/** A page whose glyphs are images, as scanners and old typesetters write them. */
const drawn = make.pdfOf([
  "5 0 obj<</Type/Font/Subtype/Type3/FontBBox[0 0 1 1]/FontMatrix[1 0 0 1 0 0]/FirstChar 65/LastChar 65/Widths[1]",
  "/Encoding<</Type/Encoding/Differences[65/A]>>/CharProcs<</A 6 0 R>>/Resources<<>>>>endobj\n",
  "6 0 obj<</Length 78>>stream\n1 0 0 0 1 1 d1\nq 1 0 0 1 0 0 cm\nBI /W 8 /H 8 /IM true /BPC 1 /F /AHx ID\nff818181818181ff>\nEI Q\n",
  "\nendstream endobj\n4 0 obj<</Length 30>>stream\nBT /F 12 Tf 20 200 Td (AAA) Tj ET\nendstream endobj\n"
])

/** A page with a stream of PDF 2. */
const squeezed = () => {
  const content = brotliCompressSync("BT /F 12 Tf 20 200 Td (Brotli) Tj ET")
  return make.pdfOf([
    "5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n",
    `4 0 obj<</Length ${content.length}/Filter/BrotliDecode>>stream\n`,
    content,
    "\nendstream endobj\n"
  ])
}

const form = Effect.promise(async () => {
  const document = await PDFDocument.create()
  const page = document.addPage([300, 300])
  page.drawText("A form", { x: 20, y: 200 })
  const field = document.getForm().createTextField("name")
  field.setText("Ada")
  field.addToPage(page, { x: 20, y: 100 })
  const image = await document.embedPng(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
  )
  page.drawImage(image, { x: 1, y: 1 })
  return document.save()
})

describe("the program's threads", () => {
  it.live(
    "read PDFs as the library does: forms, images as glyphs, Brotli, passwords",
    () =>
      Effect.gen(function* () {
        for (const [bytes, text] of [
          [yield* make.pdf(["First", "", "Third"]), /First/],
          [yield* form, /A form/],
          [drawn, /AAA/],
          [squeezed(), /Brotli/]
        ] as const) {
          assert.match(JSON.stringify(yield* readPdf(bytes, 1)), text)
        }
        const locked = new Uint8Array(readFileSync("test/documents/files/password.pdf"))
        yield* readPdf(locked, 0)
        yield* readPdf(locked, 1, "secret")
        yield* readPdf(new TextEncoder().encode("%PDF-1.7 nonsense"), 0)
      }),
    60_000
  )

  it.live(
    "read pages as the library does, with style sheets and broken tags",
    () =>
      Effect.gen(function* () {
        const paragraph = `<p>${"Words of an article, with a <a href='/more'>link</a>. ".repeat(20)}</p>`
        const html = `<html><head><title>T</title><style>p { color: red }</style></head><body><article><h1>Head</h1>${paragraph}<ul><li>One<li>Two</ul><pre><code>const a = 1</code></pre>${paragraph}</article></body></html>`
        const answers = yield* askBoth("web-reader", "src/web/internal/pages/worker.ts", [
          { html, url: "https://example.com/" },
          { html: "<p>short<b>", url: "https://example.com/" }
        ])
        assert.match(JSON.stringify(answers), /Two/)
      }),
    60_000
  )
})
