/** OpenDocument and rich text: lists, sheets, slides, comments, and what is hidden. */
import { assert, describe, it } from "@effect/vitest"
import { Documents } from "effect-deepagents/documents"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import * as make from "./make.ts"

const linesOf = (bytes: Uint8Array, name?: string) =>
  Effect.map(Documents.text({ bytes, name }), ({ text }) => text.split("\n"))

const bytesOf = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"))

const open = (type: string, body: string, more: { readonly [path: string]: string } = {}) =>
  make.archive({
    mimetype: `application/vnd.oasis.opendocument.${type}`,
    "content.xml": `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="ta" xmlns:style="s" xmlns:draw="d" xmlns:dc="dc" xmlns:presentation="p" xmlns:xlink="x">${body}</office:document-content>`,
    ...more
  })

const item = (inner: string, more = "") => `<text:list-item ${more}>${inner}</text:list-item>`

const p = (text: string) => `<text:p>${text}</text:p>`

const number = (level: number, format: string, suffix = ".", more = "") =>
  `<text:list-level-style-number text:level="${level}" style:num-format="${format}" style:num-suffix="${suffix}" ${more}/>`

describe("OpenDocument texts", () => {
  it.effect("lists keep their numbers, their levels and their continuations", () =>
    Effect.gen(function* () {
      const styles = `<office:automatic-styles><text:list-style style:name="L1">${number(1, "1")}${number(2, "a", ")")}${number(3, "1", "", 'text:display-levels="3"')}</text:list-style><text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/></text:list-style></office:automatic-styles>`
      const deep = `<text:list>${item(p("deep"))}</text:list>`
      const body = [
        `<text:list text:style-name="L1" xml:id="one">${item(p("first") + p("more") + `<text:list>${item(p("sub"))}${item(p("sub") + deep)}</text:list>`)}${item(p("second"))}</text:list>`,
        p("between"),
        `<text:list text:style-name="L1" text:continue-numbering="true">${item(p("third"))}</text:list>`,
        `<text:list text:style-name="L2">${item(p("point"))}</text:list>`,
        `<text:list text:style-name="L1" text:continue-list="one">${item(p("fourth"))}${item(p("ninth"), 'text:start-value="9"')}</text:list>`,
        `<text:list text:style-name="L1">${item(p("anew"))}<text:list-header>${p("no number")}</text:list-header></text:list>`,
        `<text:list>${item(p("plain"))}</text:list>`
      ].join("")
      assert.deepStrictEqual(yield* linesOf(yield* open("text", styles + body), "a.odt"), [
        "1. first",
        "    more",
        "    a) sub",
        "    b) sub",
        "        1.b.1 deep",
        "2. second",
        "between",
        "3. third",
        "- point",
        "4. fourth",
        "9. ninth",
        "1. anew",
        "    no number",
        "- plain"
      ])
    })
  )

  it.effect("headings have their numbers, raised text its sign, formulas their source", () =>
    Effect.gen(function* () {
      const body = [
        '<office:automatic-styles><style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style><style:style style:name="T2"><style:text-properties style:text-position="-33% 58%"/></style:style></office:automatic-styles>',
        '<text:h text:outline-level="1">One</text:h><text:h text:outline-level="2">Part</text:h>',
        '<text:h text:outline-level="2" text:is-list-header="true">Plain</text:h><text:h text:outline-level="2">Part</text:h>',
        p('10<text:span text:style-name="T1">-6</text:span> m, H<text:span text:style-name="T2">2</text:span>O'),
        p('<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>')
      ].join("")
      const bytes = yield* open("text", body, {
        "styles.xml": `<s xmlns:text="t" xmlns:style="s"><text:outline-style>${'<text:outline-level-style text:level="1" style:num-format="1"/><text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'}</text:outline-style></s>`,
        "META-INF/manifest.xml":
          '<m:manifest xmlns:m="m"><m:file-entry m:full-path="Object 1/" m:media-type="application/vnd.oasis.opendocument.formula"/></m:manifest>',
        "Object 1/content.xml":
          '<math><semantics><mrow><mn>1</mn></mrow><annotation encoding="StarMath 5.0">{1} over {550} times 10^{-6}</annotation></semantics></math>'
      })
      assert.deepStrictEqual(yield* linesOf(bytes, "a.odt"), [
        "# 1 One",
        "## 1.1 Part",
        "## Plain",
        "## 1.2 Part",
        "10^(-6) m, H_(2)O",
        "{1} over {550} times 10^{-6}"
      ])
    })
  )

  it.effect("comments have their author, headers and footers come once", () =>
    Effect.gen(function* () {
      const comment =
        "<office:annotation><dc:creator>Ada</dc:creator><dc:date>2026-01-01</dc:date><text:p>why?</text:p></office:annotation>"
      const header = "<style:header><text:p>Draft</text:p><text:p>Secret</text:p></style:header>"
      const bytes = yield* open("text", p(`Price${comment} rises`), {
        "styles.xml": `<s xmlns:style="s" xmlns:text="t" xmlns:office="o"><office:master-styles>${header.repeat(2)}<style:footer><text:p>End</text:p></style:footer></office:master-styles></s>`
      })
      assert.deepStrictEqual(yield* linesOf(bytes, "a.odt"), [
        "Price [comment by Ada: why? ] rises",
        "--- headers and footers ---",
        "header: Draft Secret",
        "footer: End"
      ])
    })
  )
})

it.effect("OpenDocument spreadsheets show visible, hidden and repeated cells, and comments", () =>
  Effect.gen(function* () {
    const cell = (inner: string, more = "") => `<table:table-cell ${more}>${inner}</table:table-cell>`
    const row = (cells: string, more = "") => `<table:table-row ${more}>${cells}</table:table-row>`
    const body = [
      '<office:automatic-styles><style:style style:name="ta2"><style:table-properties table:display="false"/></style:style></office:automatic-styles><office:spreadsheet>',
      '<table:table table:name="Prices"><table:table-column/><table:table-column table:number-columns-repeated="2" table:visibility="collapse"/>',
      row(cell(p("15.5%"), 'office:value="0.155"') + cell(p("00007")) + cell("", 'office:value="3"')),
      row(cell("", 'table:number-columns-repeated="16384"'), 'table:number-rows-repeated="4"'),
      row(
        cell(p("x"), 'table:number-columns-repeated="3"') + cell(p("far"), 'table:number-columns-repeated="999999999"')
      ),
      row(cell(p("same")), 'table:number-rows-repeated="1048000"'),
      row(
        cell(
          `<office:annotation><dc:creator>Ada</dc:creator><dc:date>now</dc:date><text:p>is it</text:p><text:p>so?</text:p></office:annotation>${p("y")}`
        ),
        'table:visibility="collapse"'
      ),
      '</table:table><table:table table:name="Secret" table:style-name="ta2">',
      row(cell(p("a") + p("b"))),
      "</table:table></office:spreadsheet>"
    ].join("")
    assert.deepStrictEqual(yield* linesOf(yield* open("spreadsheet", body), "a.ods"), [
      '--- sheet "Prices" ---',
      "[hidden columns: B to C]",
      "1: 15.5% | 00007 | 3",
      "6: x | x | x | far (also in E to XFG)",
      "7 to 1048006: same",
      "1048007 (hidden): y",
      "[comment on A1048007 by Ada] is it so?",
      '--- sheet "Secret" (hidden) ---',
      "1: a b"
    ])
  })
)

it.effect("OpenDocument presentations come by slide, with notes, hidden ones marked", () =>
  Effect.gen(function* () {
    const frame = (kind: string, inner: string) =>
      `<draw:frame presentation:class="${kind}"><draw:text-box>${inner}</draw:text-box></draw:frame>`
    const notes = (inner: string) =>
      `<presentation:notes><draw:page-thumbnail/>${frame("notes", inner)}</presentation:notes>`
    const body = [
      '<office:automatic-styles><style:style style:name="dp2"><style:drawing-page-properties presentation:visibility="hidden"/></style:style></office:automatic-styles>',
      `<draw:page draw:name="a">${frame("title", p("Hello"))}${frame("outline", `<text:list>${item(p("point"))}</text:list>`)}${notes(p("Say it"))}</draw:page>`,
      `<draw:page draw:name="b" draw:style-name="dp2">${frame("title", p("Later"))}${notes(p(""))}</draw:page>`
    ].join("")
    assert.deepStrictEqual(yield* linesOf(yield* open("presentation", body), "a.odp"), [
      "--- slide 1 ---",
      "# Hello",
      "- point",
      "Notes:",
      "Say it",
      "--- slide 2 (hidden) ---",
      "# Later"
    ])
  })
)

it.effect("presentations of PowerPoint: hidden slides, raised text, formulas, comments and their answers", () =>
  Effect.gen(function* () {
    const relation = (id: string, type: string, target: string) =>
      `<Relationship Id="${id}" Type="x/${type}" Target="${target}"/>`
    const run = (text: string, more = "") => `<a:r><a:rPr ${more}/><a:t>${text}</a:t></a:r>`
    const bytes = yield* make.archive({
      "ppt/presentation.xml": '<p:p xmlns:p="p" xmlns:r="r"><p:sldId id="1" r:id="s"/></p:p>',
      "ppt/_rels/presentation.xml.rels": `<R>${relation("s", "slide", "s.xml")}${relation("a", "authors", "a.xml")}${relation("o", "commentAuthors", "o.xml")}</R>`,
      "ppt/a.xml": '<x><author id="{1}" name="Ada"/><author id="{2}" name="Grace"/></x>',
      "ppt/o.xml": '<x><cmAuthor id="0" name="Old"/></x>',
      "ppt/s.xml": `<p:sld xmlns:p="p" xmlns:a="a" xmlns:m="m" show="0"><p:sp><a:p>${run("10")}${run("-6", 'baseline="30000"')}${run(" m: ")}<m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath></a:p></p:sp></p:sld>`,
      "ppt/_rels/s.xml.rels": `<R>${relation("c", "comments", "c.xml")}${relation("d", "comments", "d.xml")}</R>`,
      "ppt/c.xml": `<c xmlns:a="a"><cm authorId="{1}"><reply authorId="{2}"><a:p>${run("because")}</a:p></reply></cm><cm authorId="{1}"><a:p>${run("why")}</a:p><a:p>${run("so?")}</a:p></cm></c>`,
      "ppt/d.xml": '<c><cm authorId="0"><text>older</text></cm></c>'
    })
    assert.deepStrictEqual(yield* linesOf(bytes), [
      "--- slide 1 ---",
      "[this slide is hidden]",
      "10^(-6) m: (1)/(2)",
      "[comment by Grace] because",
      "[comment by Ada] why so?",
      "[comment by Old] older"
    ])
  })
)

describe("rich text", () => {
  it.effect("paragraphs, encodings, lists, tables, notes, comments, headers", () =>
    Effect.gen(function* () {
      const text = String.raw`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset128 Mincho;}}{\colortbl;\red0;}{\stylesheet{\s1 heading 1;}}{\*\generator X}{\info{\title no}}
{\header\pard Draft\par}\pard\outlinelevel0 Title\par
\pard gr\'fcn {\f1 \'cf\'f0} {\f2\'93\'fa\'96\'7b} \u8364?5 \{x\}\par
{\listtext\pard 1.\tab}\pard\ls1\ilvl0 one\par
{\listtext\pard a)\tab}\pard\ls1\ilvl1 sub\par
{\listtext\f3\'b7\tab}\pard\ilvl0 point\par
\pard 10{\super -6} m\par
\trowd\cellx1\cellx2\pard\intbl A\cell B\cell\trowd\cellx1\row\trowd\pard\intbl 1\cell 2\cell\row
\pard text{\footnote\pard see there\par} and{\*\atnid A}{\*\atnauthor Ada}{\*\annotation{\*\atndate 1}\pard why?} more {\v hidden}{\pict\bin5 }}}}}ffd8}\par
}`
      assert.deepStrictEqual(yield* linesOf(bytesOf(text)), [
        "header: Draft",
        "# Title",
        "grün Пр 日本 €5 {x}",
        "1. one",
        "    a) sub",
        "- point",
        "10^(-6) m",
        "A | B",
        "1 | 2",
        "text [note: see there ] and [comment by Ada: why?] more"
      ])
    })
  )

  it.effect("a line end or a word that acts is no fallback of a Unicode character", () =>
    Effect.gen(function* () {
      const lines = yield* linesOf(
        bytesOf(
          "{\\rtf1 a\\u8364\\\nb\\u8364\\par c\\u8364\\emdash d\\uc2\\u8364??e\\u-10179??\\u-8704??\\u8364\\\r\nf}"
        )
      )
      assert.deepStrictEqual(lines, ["a€", "b€", "c€d€e😀€", "f"])
    })
  )

  it.live("any text that begins as one is read to its end", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.constantFrom(
              "{",
              "}",
              "\\par ",
              "\\u-1?",
              "\\uc9 ",
              "\\'",
              "\\'zz",
              "\\*",
              "\\bin9",
              "\\bin-9 ",
              "\\trowd ",
              "\\cell ",
              "\\row ",
              "{\\listtext ",
              "{\\footnote ",
              "{\\*\\annotation ",
              "{\\header ",
              "\\f1",
              "\\fcharset128 ",
              "x",
              "\\"
            ),
            { maxLength: 80 }
          ),
          async (parts) => {
            const bytes = bytesOf(`{\\rtf1 ${parts.join("")}`)
            await Effect.runPromise(Effect.timeout(Stream.runDrain(Documents.stream({ bytes })), "10 seconds"))
          }
        ),
        { numRuns: scaled(2_000) }
      )
    )
  )

  it.live("a million open groups, and one word of a megabyte, take no more than they weigh", () =>
    Effect.gen(function* () {
      for (const inner of ["{".repeat(1_000_000), `\\${"a".repeat(1_000_000)}`, "{\\listtext ".repeat(100_000)]) {
        const [line = ""] = yield* linesOf(bytesOf(`{\\rtf1 ${inner} end`))
        assert.isBelow(line.length, 1_100_000)
      }
    })
  )
})

describe("files of old forms of Office", () => {
  it.effect("are told what to do with, each in its own words", () =>
    Effect.gen(function* () {
      const old = (stream: string) =>
        new Uint8Array(
          Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.alloc(600), Buffer.from(stream, "utf16le")])
        )
      for (const [stream, name, told] of [
        ["WordDocument", "a.doc", /old form of Word.*soffice --headless --convert-to docx FILE\.doc/],
        ["Workbook", "a.xls", /old form of Excel.*--convert-to xlsx FILE\.xls/],
        ["PowerPoint Document", "a.ppt", /old form of PowerPoint.*--convert-to pptx FILE\.ppt/],
        ["__substg1.0_001A001F", "a.msg", /mail of Outlook.*save it as \.eml/],
        ["EncryptedPackage", "a.docx", /locked by a password/]
      ] as const) {
        const { message } = yield* Effect.flip(linesOf(old(stream), name))
        assert.match(message, told)
        if (name === "a.msg") assert.notInclude(message, "docx")
      }
    })
  )

  it.effect("reads a text with a wrong extension by its content", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* linesOf(bytesOf("{\\rtf1 Hello}"), "a.doc"), ["Hello"])
      assert.deepStrictEqual(yield* linesOf(bytesOf("<html><p>Hello"), "a.xls"), ["Hello"])
    })
  )
})

it.effect("a table in two bytes a character is read without a mark", () =>
  Effect.gen(function* () {
    const wide = (text: string) => Uint8Array.from(Buffer.from(text, "utf16le"))
    assert.deepStrictEqual(yield* linesOf(wide("name,price\nbread,3\n"), "a.csv"), ["1: name | price", "2: bread | 3"])
    assert.deepStrictEqual(
      yield* linesOf(
        wide("name,price\nbread,3\n").map((_, at, all) => all[at ^ 1] ?? 0),
        "a.csv"
      ),
      ["1: name | price", "2: bread | 3"]
    )
  })
)

it.effect("reads a table in a declared and in an undeclared encoding", () =>
  Effect.gen(function* () {
    const textOf = (bytes: Uint8Array, mimeType: string) =>
      Effect.map(Documents.text({ bytes, mimeType }), ({ text }) => text)
    const japanese = Uint8Array.from([0x93, 0xfa, 0x96, 0x7b])
    assert.strictEqual(yield* textOf(japanese, "text/csv; charset=shift_jis"), "1: 日本")
    assert.strictEqual(yield* textOf(bytesOf("gr\u00fcn"), "text/csv"), "1: grün")
  })
)
