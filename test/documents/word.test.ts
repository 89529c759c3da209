/** Word documents: what people see of lists, formulas, headings, comments, headers and footers. */
import { assert, describe, it } from "@effect/vitest"
import { Documents } from "effect-deepagents/documents"
import * as Effect from "effect/Effect"
import * as make from "./make.ts"

const textOf = (bytes: Uint8Array) => Effect.map(Documents.text({ bytes }), ({ text }) => text)

const run = (text: string, properties = "") => `<w:r><w:rPr>${properties}</w:rPr><w:t>${text}</w:t></w:r>`

const paragraph = (inner: string, properties = "") => `<w:p><w:pPr>${properties}</w:pPr>${inner}</w:p>`

const style = (id: string) => `<w:pStyle w:val="${id}"/>`

const numbered = (list: number, level = 0) => `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${list}"/></w:numPr>`

const level = (at: number, format: string, text: string, more = "") =>
  `<w:lvl w:ilvl="${at}"><w:start w:val="1"/><w:numFmt w:val="${format}"/>${more}<w:lvlText w:val="${text}"/></w:lvl>`

const relation = (type: string, file: string) =>
  `<Relationship Id="${file}" Type="http://x/${type}" Target="${file}.xml"/>`

/** A document with parts that it is related to, by their types. */
const related = (body: string, parts: { readonly [file: string]: readonly [type: string, content: string] }) =>
  make.word(body, {
    "word/_rels/document.xml.rels": `<R>${Object.entries(parts)
      .map(([file, [type]]) => relation(type, file))
      .join("")}</R>`,
    ...Object.fromEntries(
      Object.entries(parts).map(([file, [, content]]) => [`word/${file}.xml`, `<w:x xmlns:w="w">${content}</w:x>`])
    )
  })

const numbering = [
  `<w:abstractNum w:abstractNumId="0">${level(0, "decimal", "%1.")}${level(1, "lowerLetter", "%2)")}${level(2, "lowerRoman", "(%3)")}</w:abstractNum>`,
  `<w:abstractNum w:abstractNumId="1">${level(0, "bullet", "•")}${level(1, "bullet", "o")}</w:abstractNum>`,
  `<w:abstractNum w:abstractNumId="2">${level(0, "decimal", "%1", '<w:pStyle w:val="berschrift1"/>')}${level(1, "decimal", "%1.%2", '<w:pStyle w:val="berschrift2"/>')}</w:abstractNum>`,
  '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>',
  '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>',
  '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>',
  '<w:num w:numId="4"><w:abstractNumId w:val="2"/></w:num>'
].join("")

const styles = [
  '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="4"/></w:numPr></w:pPr></w:style>',
  '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/><w:basedOn w:val="berschrift1"/></w:style>',
  '<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>',
  '<w:style w:type="paragraph" w:styleId="Eigen"><w:name w:val="Eigen"/><w:basedOn w:val="Kapitel"/></w:style>',
  '<w:style w:type="paragraph" w:styleId="Kreis"><w:name w:val="Kreis"/><w:basedOn w:val="Kreis"/></w:style>',
  '<w:style w:type="paragraph" w:styleId="Verzeichnis"><w:name w:val="TOC Heading"/><w:basedOn w:val="berschrift1"/><w:pPr><w:numPr><w:numId w:val="0"/></w:numPr><w:outlineLvl w:val="9"/></w:pPr></w:style>'
].join("")

const listed = { numbering: ["numbering", numbering], styles: ["styles", styles] } as const

describe("lists of Word", () => {
  it.effect("keep their numbers, their levels and their restarts", () =>
    Effect.gen(function* () {
      const bytes = yield* related(
        [
          paragraph(run("one"), numbered(1)),
          paragraph(run("sub"), numbered(1, 1)),
          paragraph(run("sub"), numbered(1, 1)),
          paragraph(run("deep"), numbered(1, 2)),
          paragraph(run("between")),
          paragraph(run("two"), numbered(1)),
          paragraph(run("again"), numbered(1, 1)),
          paragraph(run("point"), numbered(2)),
          paragraph(run("inner"), numbered(2, 1)),
          paragraph(run("five"), numbered(3)),
          paragraph(run("six"), numbered(3)),
          paragraph(run("unknown"), numbered(99))
        ].join(""),
        listed
      )
      assert.deepStrictEqual((yield* textOf(bytes)).split("\n"), [
        "1. one",
        "    a) sub",
        "    b) sub",
        "        (i) deep",
        "between",
        "2. two",
        "    a) again",
        "- point",
        "    - inner",
        "5. five",
        "6. six",
        "- unknown"
      ])
    })
  )

  it.effect("a paragraph before a change that was tracked has the list that it has now", () =>
    Effect.gen(function* () {
      const changed = `<w:pPrChange><w:pPr>${numbered(1)}</w:pPr></w:pPrChange>`
      assert.strictEqual(yield* textOf(yield* related(paragraph(run("plain"), changed), listed)), "plain")
    })
  )
})

it.effect("headings are known by the names and levels of their styles, with their numbers", () =>
  Effect.gen(function* () {
    const bytes = yield* related(
      [
        paragraph(run("Contents"), style("Verzeichnis")),
        paragraph(run("First"), style("berschrift1")),
        paragraph(run("Part"), style("berschrift2")),
        paragraph(run("Part"), style("berschrift2")),
        paragraph(run("Second"), style("berschrift1")),
        paragraph(run("Part"), style("berschrift2")),
        paragraph(run("Chapter"), style("Eigen")),
        paragraph(run("Circle"), style("Kreis")),
        paragraph(run("Direct"), '<w:outlineLvl w:val="1"/>')
      ].join(""),
      listed
    )
    assert.deepStrictEqual((yield* textOf(bytes)).split("\n"), [
      "Contents",
      "# 1 First",
      "## 1.1 Part",
      "## 1.2 Part",
      "# 2 Second",
      "## 2.1 Part",
      "### Chapter",
      "Circle",
      "## Direct"
    ])
  })
)

describe("formulas of Word", () => {
  const m = (name: string, ...inner: ReadonlyArray<string>) => `<m:${name}>${inner.join("")}</m:${name}>`
  const t = (text: string) => m("r", `<w:rPr><w:i/></w:rPr>`, m("t", text))
  const showWord = (...inner: ReadonlyArray<string>) =>
    Effect.flatMap(make.word(paragraph(`${run("x = ")}${m("oMath", ...inner)}${run(" end")}`)), textOf)

  it.effect("no power is a digit beside another", () =>
    Effect.gen(function* () {
      const fraction = m("f", m("num", t("1")), m("den", t("550")))
      const power = m("sSup", m("e", t("10")), m("sup", t("-6")))
      const units = m("sSup", m("e", t("mm")), m("sup", t("2.5")))
      assert.strictEqual(yield* showWord(fraction, t("×"), power, t(" "), units), "x = (1)/(550)×10^(-6) mm^(2.5) end")
      assert.strictEqual(
        yield* showWord(m("sSup", m("e", t("a"), m("d", m("e", t("b")))), m("sup", t("2")))),
        "x = (a(b))^(2) end"
      )
    })
  )

  it.effect("keeps roots, sums, matrices, brackets, functions and accents", () =>
    Effect.gen(function* () {
      const chr = (name: string, value: string) => `<m:${name} m:val="${value}"/>`
      const cases = [
        [m("rad", m("deg"), m("e", t("2"))), "√(2)"],
        [m("rad", m("deg", t("3")), m("e", t("x"))), "√[3](x)"],
        [
          m("nary", m("naryPr", chr("chr", "∑")), m("sub", t("i=1")), m("sup", t("n")), m("e", t("i"))),
          "∑_(i=1)^(n) i"
        ],
        [m("nary", m("sub"), m("sup"), m("e", t("x+1"))), "∫ (x+1)"],
        [m("m", m("mr", m("e", t("1")), m("e", t("2"))), m("mr", m("e", t("3")), m("e", t("4")))), "[1, 2; 3, 4]"],
        [m("d", m("dPr", chr("begChr", "{"), chr("endChr", "}")), m("e", t("a")), m("e", t("b"))), "{a|b}"],
        [m("func", m("fName", t("sin")), m("e", t("x"))), "sin(x)"],
        [m("func", m("fName", m("limLow", m("e", t("lim")), m("lim", t("n→∞")))), m("e", t("a"))), "lim_(n→∞)(a)"],
        [m("sSubSup", m("e", t("x")), m("sub", t("1")), m("sup", t("2"))), "x_(1)^(2)"],
        [m("f", m("fPr", chr("type", "noBar")), m("num", t("n")), m("den", t("k"))), "binom(n, k)"],
        [m("bar", m("barPr", chr("pos", "top")), m("e", t("x"))), "overline(x)"]
      ] as const
      for (const [formula, text] of cases) assert.strictEqual(yield* showWord(formula), `x = ${text} end`)
    })
  )

  it.effect("a formula of any size and depth takes no more than a paragraph", () =>
    Effect.gen(function* () {
      const deep = `${"<m:sSup><m:e>".repeat(400)}${t("x")}${"</m:e></m:sSup>".repeat(400)}`
      const wide = m("f", m("num"), m("den")).repeat(100_000)
      const long = t("x".repeat(200_000))
      for (const inner of [deep, wide, long]) assert.isBelow((yield* showWord(inner)).length, 200_000)
    })
  )
})

it.effect("raised and lowered text is told from the text beside it", () =>
  Effect.gen(function* () {
    const raised = (text: string) => run(text, '<w:vertAlign w:val="superscript"/>')
    const lowered = (text: string) => run(text, '<w:vertAlign w:val="subscript"/>')
    const bytes = yield* make.word(
      paragraph(
        `${run("10")}${raised("-")}${raised("6")}${run(" m of H")}${lowered("2")}${run("O and x")}${raised("2")}`
      )
    )
    assert.strictEqual(yield* textOf(bytes), "10^(-6) m of H_(2)O and x^(2)")
  })
)

it.effect("comments and notes have their author and their place, headers and footers come once each", () =>
  Effect.gen(function* () {
    const body = `${run("Price")}<w:r><w:commentReference w:id="4"/></w:r>${run(" rises")}<w:r><w:footnoteReference w:id="2"/></w:r>`
    const bytes = yield* related(paragraph(body), {
      comments: [
        "comments",
        `<w:comment w:id="4" w:author="Ada &#10;L.">${paragraph(run("why?"))}${paragraph(run("really"))}</w:comment>`
      ],
      footnotes: [
        "footnotes",
        `<w:footnote w:type="separator" w:id="-1">${paragraph("")}</w:footnote><w:footnote w:id="2">${paragraph(run("see there"))}</w:footnote>`
      ],
      header1: ["header", paragraph(run("Draft")) + paragraph(run("Secret"))],
      header2: ["header", paragraph(run("Draft")) + paragraph(run("Secret"))],
      footer1: ["footer", paragraph(run("Page 1"))],
      footer2: ["footer", paragraph("")]
    })
    assert.deepStrictEqual((yield* textOf(bytes)).split("\n"), [
      "Price[comment 4] rises[footnote 2]",
      "--- footnotes ---",
      "[footnote 2] see there",
      "--- comments ---",
      "[comment 4] Ada L.: why?",
      "really",
      "--- headers and footers ---",
      "header: Draft Secret",
      "footer: Page 1"
    ])
  })
)
