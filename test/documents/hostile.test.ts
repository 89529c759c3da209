/** Documents that are written to do harm: none makes a reader throw, hang, or hold much more than the document weighs. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Document } from "effect-deepagents"
import { Documents } from "effect-deepagents/documents"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import * as make from "./make.ts"

const file = (name: string) => new Uint8Array(readFileSync(new URL(`files/${name}`, import.meta.url)))

const valid: ReadonlyArray<Uint8Array> = [
  "python-docx.docx",
  "openpyxl.xlsx",
  "python-pptx.pptx",
  "odfpy.odt",
  "ebooklib.epub",
  "password.pdf"
].map(file)

/** Reads to the end: gives how much text there was, and the longest piece. */
const formatOf = (extension: string): Document.Format => {
  const format = Documents.formats.find(({ extensions }) => extensions.includes(extension))
  assert.isDefined(format)
  return format
}

const drain = (format: Document.Format, bytes: Uint8Array, name?: string) =>
  Document.readPieces(format, { bytes, name }).pipe(
    Stream.runFold(
      () => ({ total: 0, longest: 0 }),
      ({ longest, total }, { text }) => ({
        total: total + text.length,
        longest: Math.max(longest, text.length)
      })
    )
  )

const bounded = <A, E>(effect: Effect.Effect<A, E>) => Effect.timeout(effect, "20 seconds")

const reasonOf = (bytes: Uint8Array) =>
  Effect.map(Effect.flip(Stream.runDrain(Documents.stream({ bytes }))), ({ reason }) => reason)

/** Runs a property whose effect may fail in its own type, but must not die. */
const holds = <A>(arbitrary: fc.Arbitrary<A>, run: (value: A) => Effect.Effect<unknown, Document.DocumentError>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, async (value) => {
        const result = await Effect.runPromise(bounded(Effect.result(run(value))))
        if (Result.isFailure(result)) assert.isTrue(result.failure instanceof Document.DocumentError)
      }),
      { numRuns: scaled(160) }
    )
  )

describe("any bytes", () => {
  const { formats } = Documents
  it.live("are a document or a failure, in every format", () =>
    holds(fc.tuple(fc.constantFrom(...formats), fc.uint8Array({ maxLength: 2_000 })), ([format, bytes]) =>
      drain(format, bytes)
    )
  )

  it.live("so are texts that look like one", () => {
    const parts = [
      "<w:p>",
      "</w:p>",
      "<tr>",
      "<td>",
      "</tr>",
      '"',
      ",",
      "\n",
      "a",
      "&amp;",
      "<script>",
      '{"cells":[',
      "]}",
      "%PDF-1.7\n",
      "1 0 obj<<",
      "endobj",
      "Content-Type: multipart/mixed; boundary=b\n\n",
      "--b\n"
    ]
    const texts = fc.array(fc.constantFrom(...parts), { maxLength: 60 })
    return holds(fc.tuple(fc.constantFrom(...formats), texts), ([format, words]) =>
      drain(format, new TextEncoder().encode(words.join("")))
    )
  })

  it.live("so are real documents with some bytes changed, cut or doubled", () => {
    const change = fc.record({
      document: fc.constantFrom(...valid),
      flips: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 })), {
        maxLength: 8
      }),
      cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      twice: fc.boolean()
    })
    return holds(change, ({ cut, document, flips, twice }) => {
      const bytes = Uint8Array.from(document)
      for (const [place, value] of flips) bytes[Math.floor(place * (bytes.length - 1))] = value
      const end = cut === null ? bytes : bytes.subarray(0, Math.floor(cut * bytes.length))
      const given = twice ? Uint8Array.from([...end, ...end]) : end
      const format = Document.find(Documents.formats, { bytes: given }) ?? formatOf("docx")
      return drain(format, given)
    })
  })
})

describe("archives that unpack to too much", () => {
  const spaces = new Uint8Array(64 * 1024 * 1024).fill(0x20)

  it.live("are refused: one long token", () =>
    Effect.gen(function* () {
      const bytes = yield* make.archive({ "word/document.xml": spaces })
      assert.include(["TooLarge", "Damaged"], yield* reasonOf(bytes))
    })
  )

  it.live("are refused: many small elements", () =>
    Effect.gen(function* () {
      const elements = new TextEncoder().encode(
        "<a>".padEnd(1_000, " ") + `<b a="${"x".repeat(100)}"/>`.repeat(300_000)
      )
      const bytes = yield* make.archive({ "word/document.xml": elements })
      assert.isBelow(bytes.length, 200_000)
      assert.strictEqual(yield* reasonOf(bytes), "TooLarge")
    })
  )

  it.live("do not matter in an entry that is not read", () =>
    Effect.gen(function* () {
      const word = "<w:document><w:p><w:t>text</w:t></w:p></w:document>"
      const bytes = yield* make.archive({ "word/media/bomb": spaces, "word/document.xml": word })
      assert.strictEqual((yield* Documents.text({ bytes })).text, "text")
    })
  )

  it.live("are refused: texts of a workbook that are held at once", () =>
    Effect.gen(function* () {
      const bytes = yield* make.workbook({ S: "" }, { texts: "<si><t>aaaaaaaa</t></si>".repeat(300_000) })
      assert.strictEqual(yield* reasonOf(bytes), "TooLarge")
    })
  )
})

describe("small files with large content", () => {
  it.live("rows of cells far to the right do not fill the gap", () =>
    Effect.gen(function* () {
      const row = (number: number) => `<row r="${number}"><c r="XFD${number}"><v>1</v></c></row>`
      const rows = Array.from({ length: 2_000 }, (_, index) => row(index + 1)).join("")
      const { total } = yield* drain(formatOf("xlsx"), yield* make.workbook({ S: rows }))
      assert.isBelow(total, 2 * rows.length)
    })
  )

  it.live("spaces that an OpenDocument text counts are bounded", () =>
    Effect.gen(function* () {
      const bytes = yield* make.archive({
        "content.xml": `<o><text:p>${'<text:s text:c="999999999"/>'.repeat(100)}x</text:p></o>`
      })
      const { total } = yield* drain(formatOf("odt"), bytes)
      assert.isBelow(total, 20_000)
    })
  )

  it.live("a paragraph, a cell, a row of any length comes in pieces", () =>
    Effect.gen(function* () {
      const long = "word ".repeat(400_000)
      const cells = `<w:tr>${`<w:tc><w:p><w:t>${"x".repeat(1_000)}</w:t></w:p></w:tc>`.repeat(1_000)}</w:tr>`
      for (const body of [`<w:p><w:t>${long}</w:t></w:p>`, cells]) {
        const { longest, total } = yield* drain(formatOf("docx"), yield* make.word(body))
        assert.isAbove(total, 900_000)
        assert.isBelow(longest, 300_000)
      }
      const { longest } = yield* drain(formatOf("csv"), new TextEncoder().encode(`"${long}`), "a.csv")
      assert.isBelow(longest, 300_000)
    })
  )

  it.live("runs of spaces are gone over once", () =>
    Effect.gen(function* () {
      const spaces = " ".repeat(32_000)
      const paragraphs = `<w:p><w:t xml:space="preserve">x${spaces}x</w:t></w:p>`.repeat(50)
      yield* bounded(drain(formatOf("docx"), yield* make.word(paragraphs)))
      yield* bounded(drain(formatOf("csv"), new TextEncoder().encode(`"x${spaces}x"\n`.repeat(50)), "a.csv"))
      yield* bounded(drain(formatOf("html"), new TextEncoder().encode(`<pre>x${spaces}x</pre>`.repeat(50))))
      yield* bounded(drain(formatOf("pdf"), yield* make.pdf([`x${" ".repeat(200_000)}x`])))
    })
  )

  it.live("a page of elements in each other, and one in which a table never ends", () =>
    Effect.gen(function* () {
      for (const tag of ["<div>", "<table><tr><td>", "<ul><li>", "<a href='https://x.y'>"]) {
        const page = `<html>${tag.repeat(50_000)}text`
        const { total } = yield* bounded(drain(formatOf("html"), new TextEncoder().encode(page)))
        assert.isBelow(total, 10 * page.length)
      }
    })
  )

  it.live("XML that is nested deeper than any document", () =>
    Effect.gen(function* () {
      const bytes = yield* make.word("<w:tbl>".repeat(200_000))
      assert.strictEqual(yield* reasonOf(bytes), "TooLarge")
    })
  )
})

it.live("line ends that the parser of mail is not given are there in its text", () =>
  Effect.gen(function* () {
    const part = (head: string, body: string) => `--b\r\n${head}\r\n\r\n${body}\r\n`
    const mixed = (parts: string) => `From: a@b.c\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${parts}--b--\r\n`
    const quoted = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding:\r\n quoted-printable"
    const inner = "From: d@e.f\r\nSubject: inner\r\n\r\nfirst\r\n-- \r\nsecond\r\n"
    const textOf = (mail: string) =>
      Effect.map(Documents.text({ bytes: new TextEncoder().encode(mail), name: "a.eml" }), ({ text }) => text)
    assert.include(yield* textOf(mixed(part(quoted, "caf=C3=A9 is=\r\n n=\nice=3D\r\nnext"))), "café is nice=\nnext")
    assert.include(yield* textOf(mixed(part("Content-Type: text/plain", "a=\r\nb\r\n\r\n--c\r\nd"))), "a=\nb\n--c\nd")
    const nested = yield* textOf(mixed(part("Content-Type: message/rfc822", inner)))
    for (const line of ["inner", "first\n", "second"]) assert.include(nested, line)
    const flowed = yield* textOf("Content-Type: text/plain; format=flowed\r\n\r\none \r\nline\r\n")
    assert.include(flowed, "one line")
    const page = yield* textOf("Content-Type: text/html\r\n\r\n<pre>one\r\ntwo</pre>\r\n")
    assert.include(page, "one\ntwo")
    const file = part("Content-Type: application/x; name=x\r\nContent-Transfer-Encoding: base64", "aGVs\r\nbG8=\r\n")
    assert.include(yield* textOf(mixed(file)), "(application/x, 5 bytes)")
  })
)

it.live("holds no more than a part of a workbook of 200,000 cells", () =>
  Effect.gen(function* () {
    const cell = (column: string, row: number) =>
      `<c r="${column}${row}" t="inlineStr"><is><t>value ${row}</t></is></c>`
    const rows = Array.from(
      { length: 20_000 },
      (_, row) => `<row r="${row + 1}">${[..."ABCDEFGHIJ"].map((column) => cell(column, row + 1)).join("")}</row>`
    )
    const bytes = yield* make.workbook({ S: rows.join("") })
    const { longest, total } = yield* bounded(drain(formatOf("xlsx"), bytes))
    assert.isAbove(total, 2_000_000)
    assert.isBelow(longest, 65_536)
  })
)
