/** Documents of every format as text, with the marks of their parts. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Document } from "effect-deepagents"
import { Documents } from "effect-deepagents/documents"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as make from "./make.ts"

const file = (name: string) => new Uint8Array(readFileSync(new URL(`files/${name}`, import.meta.url)))

const textOf = (bytes: Uint8Array, more: Omit<Document.Input, "bytes"> = {}) =>
  Effect.map(Documents.text({ bytes, ...more }), ({ text }) => text)

const bytesOf = (text: string) => new TextEncoder().encode(text)

const reasonOf = (bytes: Uint8Array, more: Omit<Document.Input, "bytes"> = {}) =>
  Effect.map(Effect.flip(textOf(bytes, more)), ({ reason }) => reason)

describe("files of other programs, recognised by their content", () => {
  it.effect("a Word document: headings, lists, tables", () =>
    Effect.gen(function* () {
      const text = yield* textOf(file("python-docx.docx"))
      expect(text).toMatch(/^# Ada & Grace\n# Part\nParagraph 0 with <markup> & more\.\n/)
      expect(text).toContain("\n- an item\nName | Age\nAda | 36\nAfter the break")
    })
  )

  it.effect("a workbook: sheets, dates, formulas without a value, a cell far away", () =>
    Effect.gen(function* () {
      expect(yield* textOf(file("openpyxl.xlsx"))).toBe(
        [
          '--- sheet "Prices" ---',
          "1: Name | Price | Since",
          "2: Ada | 1.5 | 2026-01-02",
          "3: Sum | =SUM(B2:B2) | 2026-01-02 03:04:05",
          "9: [Z] far",
          '--- sheet "Empty & co" ---',
          "1: TRUE"
        ].join("\n")
      )
    })
  )

  it.effect("a presentation: slides in their order, with their notes", () =>
    Effect.gen(function* () {
      const text = yield* textOf(file("python-pptx.pptx"))
      expect(text).toMatch(/^--- slide 1 ---\n# Title 1\nBody 1\nSecond line\nNotes:\nSay 1\n--- slide 2 ---\n/)
      const last = yield* textOf(file("python-pptx.pptx"), { from: 3 })
      expect(last).toBe("--- slide 3 ---\n# Title 3\nBody 3\nSecond line\nNotes:\nSay 3")
    })
  )

  it.effect("an OpenDocument text, and a book in the order of its spine", () =>
    Effect.gen(function* () {
      expect(yield* textOf(file("odfpy.odt"))).toBe("# Heading\nSome text & more\n- item\nName | Age\nAda | 36")
      const book = yield* textOf(file("ebooklib.epub"))
      expect(book.split("\n").filter((line) => line.startsWith("It was"))).toEqual([
        "It was & dark 1.",
        "It was & dark 2."
      ])
    })
  )
})

describe("Word", () => {
  const paragraph = (inner: string) => `<w:p>${inner}</w:p>`
  const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`

  it.effect("leaves out deleted and duplicated text", () =>
    Effect.gen(function* () {
      const bytes = yield* make.word(
        paragraph(
          `${run("kept")}<w:del>${run(" deleted")}</w:del><mc:AlternateContent><mc:Choice>${run(" once")}</mc:Choice><mc:Fallback>${run(" twice")}</mc:Fallback></mc:AlternateContent>`
        )
      )
      expect(yield* textOf(bytes)).toBe("kept once")
    })
  )

  it.effect("counts pages as Word laid them out, and a break of the author's once", () =>
    Effect.gen(function* () {
      const bytes = yield* make.word(
        [
          paragraph(run("one")),
          paragraph('<w:r><w:br w:type="page"/></w:r>'),
          paragraph(`<w:r><w:lastRenderedPageBreak/></w:r>${run("two")}`),
          paragraph(`<w:r><w:lastRenderedPageBreak/></w:r>${run("three")}`)
        ].join(""),
        { "docProps/app.xml": "<Properties><Pages>3</Pages></Properties>" }
      )
      expect(yield* textOf(bytes)).toBe("--- page 1 ---\none\n--- page 2 ---\ntwo\n--- page 3 ---\nthree")
      expect(yield* textOf(bytes, { from: 3 })).toBe("--- page 3 ---\nthree")
    })
  )

  it.effect("gives footnotes and comments behind the text", () =>
    Effect.gen(function* () {
      const bytes = yield* make.word(paragraph(run("text")), {
        "word/_rels/document.xml.rels":
          '<Relationships><Relationship Id="a" Type="x/footnotes" Target="footnotes.xml"/></Relationships>',
        "word/footnotes.xml": `<w:footnotes>${paragraph(run("a note"))}</w:footnotes>`
      })
      expect(yield* textOf(bytes)).toBe("text\n--- footnotes ---\na note")
    })
  )
})

describe("workbooks", () => {
  const styles =
    '<numFmts><numFmt numFmtId="200" formatCode="[$-409]d/m/yyyy;@"/><numFmt numFmtId="201" formatCode="&quot;days&quot; 0.00"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="200"/><xf numFmtId="201"/><xf numFmtId="20"/></cellXfs>'

  it.effect("reads shared strings, dates by the formats of cells, and invalid numbers", () =>
    Effect.gen(function* () {
      const bytes = yield* make.workbook(
        {
          "A &amp; B":
            '<row r="2"><c r="A2" t="s"><v>1</v></c><c r="C2" s="1"><v>46023</v></c><c r="D2" s="2"><v>46023.5</v></c><c r="E2" s="3"><v>46023</v></c><c r="F2" s="4"><v>0.25</v></c><c r="G2" t="b"><v>0</v></c><c r="H2" t="e"><v>#DIV/0!</v></c></row>'
        },
        { styles, texts: "<si><t>no</t></si><si><r><t>Ada </t></r><r><t>L.</t></r><rPh><t>no</t></rPh></si>" }
      )
      expect(yield* textOf(bytes)).toBe(
        '--- sheet "A & B" ---\n2: Ada L. |  | 2026-01-01 | 2026-01-01 12:00:00 | days 46023.00 | 06:00:00 | FALSE | #DIV/0!'
      )
    })
  )

  it.effect("books of old Macs count days from 1904", () =>
    Effect.gen(function* () {
      const sheet = { S: '<row r="1"><c r="A1" s="1"><v>0</v></c><c r="B1" s="1"><v>44561</v></c></row>' }
      expect(yield* textOf(yield* make.workbook(sheet, { styles, date1904: true }))).toContain(
        "1: 00:00:00 | 2026-01-01"
      )
    })
  )
})

describe("PDF", () => {
  it.live("goes page by page, begins anywhere, and says of a page without text that it may be a scan", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(["Page one", "", "Page three"])
      expect(yield* textOf(bytes)).toBe(
        "--- page 1 ---\nPage one\n--- page 2 ---\n[no text on this page; it may be a scan or a picture]\n--- page 3 ---\nPage three"
      )
      expect(yield* textOf(bytes, { from: 3 })).toBe("--- page 3 ---\nPage three")
    })
  )

  it.live("asks for a password, and opens with it", () =>
    Effect.gen(function* () {
      const bytes = file("password.pdf")
      expect(yield* reasonOf(bytes)).toBe("Encrypted")
      expect(yield* reasonOf(bytes, { password: Redacted.make("wrong") })).toBe("Encrypted")
      expect(yield* textOf(bytes, { password: Redacted.make("secret") })).toContain("Top secret")
    })
  )

  it.live("leaves the bytes as they are", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(["once"])
      yield* textOf(bytes)
      expect(yield* textOf(bytes)).toContain("once")
    })
  )
})

describe("texts that are documents", () => {
  it.effect("a page: no scripts; lists, tables and links", () =>
    Effect.gen(function* () {
      const page =
        '<!doctype html><title>T</title><script>no()</script><h2>Head</h2><p>See <a href="https://a.b/c">this</a> &amp;\n that</p><ul><li>x</ul><table><tr><td>1<td>2</table>'
      expect(yield* textOf(bytesOf(page))).toBe("# T\n## Head\nSee this (https://a.b/c) & that\n- x\n1 | 2")
    })
  )

  it.effect("a page in the encoding that it says", () =>
    Effect.gen(function* () {
      const bytes = Uint8Array.from(Buffer.from('<html><meta charset="latin1"><p>gr\u00fcn', "latin1"))
      expect(yield* textOf(bytes)).toBe("gr\u00fcn")
    })
  )

  it.effect("a table: separators, quotes in their places and elsewhere", () =>
    Effect.gen(function* () {
      const readTable = (text: string) => textOf(bytesOf(text), { name: "t.csv" })
      expect(yield* readTable('a;b\n"x;\ny";2\n')).toBe("1: a | b\n2: x; y | 2")
      expect(yield* readTable('a,b\n1,2\nx"y,3\n4,5')).toBe('1: a | b\n2: 1 | 2\n3: x"y | 3\n4: 4 | 5')
    })
  )

  it.effect("a notebook: cells and their outputs", () =>
    Effect.gen(function* () {
      const notebook = {
        cells: [
          { cell_type: "markdown", source: ["# Title\n", "text"] },
          {
            cell_type: "code",
            source: "1+1",
            outputs: [
              { output_type: "execute_result", data: { "text/plain": ["2"], "image/png": "AAAA" } },
              { output_type: "error", ename: "E", evalue: "bad" }
            ]
          }
        ]
      }
      expect(yield* textOf(bytesOf(JSON.stringify(notebook)), { name: "n.ipynb" })).toBe(
        "--- cell 1 (markdown) ---\n# Title\ntext\n--- cell 2 (code) ---\n1+1\nOutput of the code cell:\n2\nOutput of the code cell:\n[a picture, image/png]\nOutput of the code cell:\nE: bad"
      )
      expect(yield* reasonOf(bytesOf("{}"), { name: "n.ipynb" })).toBe("Damaged")
    })
  )

  it.effect("a notebook: the last of several texts of an output counts, and each of its pictures, however many", () =>
    Effect.gen(function* () {
      const showData = (data: string) =>
        textOf(
          bytesOf(
            `{"cells":[{"cell_type":"code","source":"","outputs":[{"output_type":"display_data","data":{${data}}}]}]}`
          ),
          { name: "n.ipynb" }
        )
      const texts = Array.from({ length: 100_000 }, (_, index) => `"text/plain":"${index}"`)
      expect(yield* showData(texts.join(","))).toContain("Output of the code cell:\n99999")
      const pictures = Array.from({ length: 200_000 }, (_, index) => `"image/${index}":""`)
      expect(yield* showData(pictures.join(","))).toContain("[a picture, image/0]")
    })
  )

  it.effect("a mail: heads, attachments, text; or its page, if it has no text", () =>
    Effect.gen(function* () {
      const mail = (type: string, body: string) =>
        bytesOf(
          `From: Ada <ada@a.b>\r\nTo: g@h.i\r\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: ${type}\r\n\r\n${body}\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="r.pdf"\r\n\r\nxx\r\n--b--\r\n`
        )
      const heads = "From: Ada <ada@a.b>\nTo: g@h.i\nSubject: Grüße\nAttached: r.pdf (application/pdf, 3 bytes)\n"
      expect(yield* textOf(mail("text/plain", "Hello\r\nyou"), { name: "m.eml" })).toBe(`${heads}Hello\nyou`)
      expect(yield* textOf(mail("text/html", "<p>Hello"), { mimeType: "message/rfc822" })).toBe(`${heads}Hello`)
    })
  )
})

describe("unreadable documents", () => {
  it.live("is told apart", () =>
    Effect.gen(function* () {
      expect(yield* reasonOf(bytesOf("just text"))).toBe("Unsupported")
      expect(yield* reasonOf(bytesOf("PK\u0003\u0004 and so on"), { name: "a.docx" })).toBe("Damaged")
      expect(yield* reasonOf(file("python-docx.docx").subarray(0, 20_000), { name: "a.docx" })).toBe("Damaged")
      expect(yield* reasonOf(bytesOf("%PDF-1.7 nonsense"))).toBe("Damaged")
    })
  )

  it.effect("an Office file of an old form, or with a password, is told what to do with", () =>
    Effect.gen(function* () {
      const old = (text: string) =>
        new Uint8Array(
          Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.alloc(3_000), Buffer.from(text, "utf16le")])
        )
      const describeFailure = (bytes: Uint8Array, name: string) =>
        Effect.map(Effect.flip(textOf(bytes, { name })), ({ message, reason }) => `${reason}: ${message}`)
      expect(yield* describeFailure(old("EncryptedPackage"), "a.docx")).toMatch(
        /^Encrypted: .*password; save it without one/
      )
      expect(yield* describeFailure(old("WordDocument"), "a.docx")).toMatch(
        /^Unsupported: .*old form.*save it as \.docx/
      )
      expect(yield* describeFailure(old("WordDocument"), "a.doc")).toMatch(/^Unsupported: .*old form/)
    })
  )

  it.effect("reports missing parts in their place, and reads circular parts once", () =>
    Effect.gen(function* () {
      const relations = (...targets: ReadonlyArray<string>) =>
        `<Relationships>${targets.map((target, index) => `<Relationship Id="r${index}" Type="http://x/${target.includes("slide") ? "slide" : "worksheet"}" Target="${target}"/>`).join("")}</Relationships>`
      const book = yield* make.archive({
        "xl/workbook.xml":
          '<workbook xmlns:r="r"><sheets><sheet name="A" r:id="r0"/><sheet name="B" r:id="r1"/><sheet name="C" r:id="r9"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations("a.xml", "../../../etc/passwd"),
        "xl/a.xml":
          '<worksheet><sheetData><row r="1"><c t="s"><v>99999999</v></c><c t="s"><v>-1</v></c><c><v>7</v></c></row></sheetData></worksheet>'
      })
      const missing = "[this sheet is missing in the file]"
      const shown = yield* textOf(book)
      expect(shown).toMatch(/^--- sheet "A" ---\n.*7\n--- sheet "B" ---/)
      expect(shown.split("\n").slice(-4)).toEqual(['--- sheet "B" ---', missing, '--- sheet "C" ---', missing])
      const slides = yield* make.archive({
        "ppt/presentation.xml":
          '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="r0"/><p:sldId r:id="r1"/><p:sldId r:id="r0"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations("slide1.xml", "slide2.xml"),
        "ppt/slide1.xml": '<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>One</a:t></a:r></a:p></p:sld>',
        "ppt/_rels/slide1.xml.rels": relations("presentation.xml")
      })
      expect(yield* textOf(slides)).toBe("--- slide 1 ---\nOne\n--- slide 2 ---\n[this slide is missing in the file]")
      const odd = yield* make.word("<w:p><w:r><w:t>Read</w:t></w:r></w:p>", {
        "word/_rels/document.xml.rels":
          '<Relationships><Relationship Id="r" Type="http://x/footnotes" Target="document.xml"/><Relationship Id="q" Type="http://x/comments" Target="gone.xml"/></Relationships>'
      })
      expect(yield* textOf(odd)).toContain("Read")
    })
  )

  it.live("reads a PDF with circular parts or wrong counts as far as possible", () =>
    Effect.gen(function* () {
      const page = "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj"
      const form = "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length 11/Resources<</XObject<</X 5 0 R>>>>"
      for (const body of [
        "2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000>>endobj",
        `2 0 obj<</Type/Pages/Kids[3 0 R]/Count 2000000000>>endobj ${page}`,
        "2 0 obj<</Type/Pages/Kids[]/Count -5>>endobj",
        `2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj ${page} xref\n0 1\n0000000000 65535 f \ntrailer<</Root 1 0 R/Prev 150/Size 4>>\nstartxref\n150\n%%EOF`,
        `2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>>>endobj 4 0 obj<</Length 4>>stream\n/X Do\nendstream endobj 5 0 obj<<${form}>>stream\n/X Do /X Do\nendstream endobj`,
        `2 0 obj 3 0 R endobj 3 0 obj 2 0 R endobj`,
        `2 0 obj<</Kids ${"[".repeat(100_000)}`
      ]) {
        const bytes = bytesOf(`%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj ${body}\ntrailer<</Root 1 0 R>>\n`)
        const result = yield* Effect.result(textOf(bytes))
        expect([body.slice(0, 60), result._tag === "Success" ? "" : result.failure.reason]).toEqual([
          body.slice(0, 60),
          expect.stringMatching(/^(|Damaged)$/)
        ])
      }
    })
  )

  it.effect("refuses an entity in any form", () =>
    Effect.gen(function* () {
      const bytes = yield* make.archive({
        "word/document.xml":
          '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]><w:document><w:p><w:t>&a;&b;</w:t></w:p></w:document>'
      })
      expect(yield* reasonOf(bytes)).toBe("Damaged")
    })
  )

  it.effect("turns a defect of a format into a failure", () =>
    Effect.gen(function* () {
      const broken = Document.format("broken", {
        mimeTypes: [],
        extensions: [],
        read: () => Stream.die(new Error("boom"))
      })
      const error = yield* Effect.flip(Stream.runDrain(Document.readPieces(broken, { bytes: new Uint8Array() })))
      expect(error.reason).toBe("Damaged")
    })
  )
})

it.effect("a text is cut at the limit", () =>
  Effect.gen(function* () {
    const { text, truncated } = yield* Documents.text({ bytes: file("python-docx.docx") }, { limit: 20 })
    expect([text, truncated]).toEqual(["# Ada & Grace\n# Part", true])
  })
)
