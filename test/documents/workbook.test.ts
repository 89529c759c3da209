/** Workbooks: numbers as their cells show them, what is hidden, and comments. */
import { assert, describe, it } from "@effect/vitest"
import { Documents } from "effect-deepagents/documents"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import * as make from "./make.ts"

const textOf = (bytes: Uint8Array) => Effect.map(Documents.text({ bytes }), ({ text }) => text)

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;")

/** The cells of one row, each a number in a format. */
const showCells = (cells: ReadonlyArray<readonly [code: string | number, value: string]>) =>
  Effect.gen(function* () {
    const codes = cells.map(([code], at) =>
      typeof code === "string" ? `<numFmt numFmtId="${200 + at}" formatCode="${escape(code)}"/>` : ""
    )
    const styles = cells.map(([code], at) => `<xf numFmtId="${typeof code === "string" ? 200 + at : code}"/>`)
    const row = cells.map(([, value], at) => `<row r="${at + 1}"><c r="A${at + 1}" s="${at}"><v>${value}</v></c></row>`)
    const bytes = yield* make.workbook(
      { S: row.join("") },
      { styles: `<numFmts>${codes.join("")}</numFmts><cellXfs>${styles.join("")}</cellXfs>` }
    )
    return (yield* textOf(bytes))
      .split("\n")
      .slice(1)
      .map((line) => line.replace(/^\d+: /, ""))
  })

describe("numbers of a workbook", () => {
  it.effect("are dressed as their format says, with all their digits", () =>
    Effect.gen(function* () {
      const cases = [
        ["0.0%", "0.155", "15.5%"],
        [9, "0.155", "15.5%"],
        ["0%", "7.0000000000000007E-2", "7%"],
        ["00000", "7", "00007"],
        ["00000", "123456", "123456"],
        ["000-00-0000", "12345678", "012-34-5678"],
        ["0.00", "1.5", "1.50"],
        ["0.00", "1.23456", "1.23456"],
        ["0", "0.4", "0.4"],
        ["#,##0.00", "1234567.5", "1,234,567.50"],
        ['#,##0.00 "€"', "1234.5", "1,234.50 €"],
        ["[$€-407] #,##0.00", "-1234.5", "-€ 1,234.50"],
        ['_-* #,##0.00 "€"_-;-* #,##0.00 "€"_-;_-* "-"?? "€"_-', "0", "0.00 €"],
        ["#,##0;(#,##0)", "-5", "(5)"],
        ["0.00;[Red]0.00", "-5", "-5.00"],
        ["0.0,,", "1234567", "1,234,567.0"],
        ["General", "0.15500000000000003", "0.155"],
        [0, "12345678901234567", "12345678901234567"],
        [";;;", "42", "42"],
        ["@", "7", "7"],
        ["0.00E+00", "1500", "1500"],
        ["# ?/?", "0.5", "0.5"],
        ["[h]:mm:ss", "1.5", "36:00:00"],
        ["yyyy-mm-dd", "46023", "2026-01-01"],
        ["0.0%", "nonsense", "nonsense"]
      ] as const
      const texts = yield* showCells(cases.map(([code, value]) => [code, value]))
      assert.deepStrictEqual(
        cases.map(([code, value], at) => [code, value, texts[at]]),
        cases.map(([...one]) => one)
      )
    })
  )

  it.effect("no format changes or hides a number", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom("0", "#", "?", ",", ".", ";", " ", "-", '"x"', "(", ")", "[Red]", "€"), {
            maxLength: 12
          }),
          fc.integer({ min: -1_000_000, max: 1_000_000 }),
          async (code, thousandths) => {
            const value = thousandths / 1_000
            const [text = ""] = await Effect.runPromise(showCells([[code.join("") || "0", String(value)]]))
            const digits = text.replaceAll(/[^\d.]/g, "")
            assert.strictEqual(Number(digits), Math.abs(value), `${code.join("")} of ${value}: ${text}`)
            if (value < 0) assert.match(text, /[-(]/)
          }
        ),
        { numRuns: scaled(800) }
      )
    )
  )
})

it.effect("marks hidden parts of a workbook", () =>
  Effect.gen(function* () {
    const bytes = yield* make.archive({
      "xl/workbook.xml":
        '<workbook xmlns:r="r"><sheets><sheet name="A" r:id="a"/><sheet name="B" state="veryHidden" r:id="b"/></sheets></workbook>',
      "xl/_rels/workbook.xml.rels":
        '<R><Relationship Id="a" Type="x/worksheet" Target="a.xml"/><Relationship Id="b" Type="x/worksheet" Target="b.xml"/></R>',
      "xl/a.xml":
        '<w><cols><col min="2" max="4" hidden="1"/><col min="6" max="6" hidden="1"/><col min="7" max="7"/></cols><sheetData><row r="1"><c><v>1</v></c></row><row r="2" hidden="1"><c><v>2</v></c></row></sheetData></w>',
      "xl/b.xml": '<w><sheetData><row r="1"><c t="str"><v>00007</v></c></row></sheetData></w>'
    })
    assert.deepStrictEqual((yield* textOf(bytes)).split("\n"), [
      '--- sheet "A" ---',
      "[hidden columns: B to D, F]",
      "1: 1",
      "2 (hidden): 2",
      '--- sheet "B" (hidden) ---',
      "1: 00007"
    ])
  })
)

it.effect("puts comments of a workbook behind their sheet, and those of a thread once", () =>
  Effect.gen(function* () {
    const bytes = yield* make.archive({
      "xl/workbook.xml":
        '<workbook xmlns:r="r"><sheets><sheet name="A" r:id="a"/><sheet name="B" r:id="a2"/></sheets></workbook>',
      "xl/_rels/workbook.xml.rels":
        '<R><Relationship Id="a" Type="x/worksheet" Target="worksheets/a.xml"/><Relationship Id="p" Type="x/person" Target="persons/person.xml"/></R>',
      "xl/persons/person.xml": '<p><person displayName="Grace" id="{1}"/></p>',
      "xl/worksheets/a.xml": '<w><sheetData><row r="1"><c><v>1</v></c></row></sheetData></w>',
      "xl/worksheets/_rels/a.xml.rels":
        '<R><Relationship Id="c" Type="x/comments" Target="../c.xml"/><Relationship Id="t" Type="x/threadedComment" Target="../t.xml"/></R>',
      "xl/c.xml":
        '<comments><authors><author>Ada</author><author>tc={9}</author></authors><commentList><comment ref="A1" authorId="0"><text><r><t>Ada:\n</t></r><r><t>is it so?</t></r></text></comment><comment ref="B2" authorId="1"><text><t>[Threaded comment]</t></text></comment></commentList></comments>',
      "xl/t.xml":
        '<T><threadedComment ref="B2" personId="{1}" id="{9}"><text>yes</text></threadedComment><threadedComment ref="B2" personId="{2}" parentId="{9}"><text>no</text></threadedComment></T>'
    })
    assert.deepStrictEqual((yield* textOf(bytes)).split("\n").slice(0, 5), [
      '--- sheet "A" ---',
      "1: 1",
      "[comment on A1 by Ada] Ada: is it so?",
      "[comment on B2 by Grace] yes",
      "[comment on B2] no"
    ])
  })
)
