/** The memory for documents, each read in a process of its own: at most ten times their size. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { isFull } from "../scale.ts"
import * as make from "./make.ts"

const archives: ReadonlySet<string> = new Set(["docx", "epub", "odp", "ods", "odt", "pptx", "xlsx"])

/** The memory that a reader and its runtime may take for the smallest document. PDF has a thread of its own. The memory of each entry of an archive is garbage, which V8 collects at 64 MB. */
const alwaysOf = (format: string): number =>
  format === "pdf" ? 128_000_000 : archives.has(format) ? 96_000_000 : 32_000_000

type Bytes = string | Uint8Array

/** Words that no archive packs well. */
const makeWords = () => {
  let seed = 7
  const word = () => {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fff_ffff
    return seed.toString(36)
  }
  return { word, words: (count: number) => Array.from({ length: count }, word).join(" ") }
}
const { word, words } = makeWords()

const times = (count: number, of: (index: number) => string) => Array.from({ length: count }, (_, i) => of(i)).join("")

const odt = (body: string, type = "text") =>
  make.archive({ mimetype: `application/vnd.oasis.opendocument.${type}`, "content.xml": `<o>${body}</o>` })

const pptx = (slides: number, slide: string, shown = times(slides, (i) => `<sldId r:id="r${i}"/>`)) =>
  make.archive({
    "ppt/_rels/presentation.xml.rels": `<R>${times(slides, (i) => `<Relationship Id="r${i}" Type="x/slide" Target="s${i}.xml"/>`)}</R>`,
    "ppt/presentation.xml": `<p xmlns:r="r">${shown}</p>`,
    ...Object.fromEntries(Array.from({ length: slides }, (_, i) => [`ppt/s${i}.xml`, slide])),
    // Bytes that nobody reads: they let as much be unpacked.
    padding: words(300_000)
  })

const epub = (sections: number, section: string, spine = times(sections, (i) => `<itemref idref="i${i}"/>`)) =>
  make.archive({
    mimetype: "application/epub+zip",
    "META-INF/container.xml": `<c><rootfile full-path="p.opf"/></c>`,
    "p.opf": `<p>${times(sections, (i) => `<item id="i${i}" href="${i}.html"/>`)}${spine}</p>`,
    ...Object.fromEntries(Array.from({ length: sections }, (_, i) => [`${i}.html`, section])),
    padding: words(300_000)
  })

const mail = (body: string, head = "Content-Type: text/plain") => `From: a@b.c\r\n${head}\r\n\r\n${body}`

const notebook = (cells: string) => `{"cells":[${cells}]}`

const cell = (more: string) => `{"cell_type":"code","source":"x"${more}}`

const rows = (count: number, of: (row: number, column: string) => string) =>
  times(count, (row) => `<row r="${row + 1}">${[..."ABCDEFGHIJ"].map((column) => of(row + 1, column)).join("")}</row>`)

const paragraphs = (count: number) => times(count, () => `<w:p><w:t>${words(10)}</w:t></w:p>`)

/** By format: a small document, and large ones. The first of these is as people write them. */
const documents: {
  readonly [format: string]: readonly [
    small: Effect.Effect<Bytes>,
    large: { readonly [name: string]: () => Effect.Effect<Bytes> }
  ]
} = {
  docx: [
    make.word(paragraphs(80)),
    {
      plain: () => make.word(paragraphs(100_000)),
      "a row of 400,000 cells": () =>
        make.word(`<w:tr>${times(400_000, () => `<w:tc><w:p><w:t>${word()}</w:t></w:p></w:tc>`)}</w:tr>`),
      "a paragraph of 7 MB": () => make.word(`<w:p><w:t>${words(1_000_000)}</w:t></w:p>`),
      "100,000 styles": () =>
        make.word(paragraphs(10), {
          "word/_rels/document.xml.rels": '<R><Relationship Id="s" Type="x/styles" Target="s.xml"/></R>',
          "word/s.xml": `<s>${times(100_000, () => `<style styleId="${word()}"><name val="${word()}"/></style>`)}</s>`
        }),
      "80,000 powers in each other": () =>
        make.word(
          times(
            200,
            () =>
              `<w:p><oMath>${"<sSup><e>".repeat(400)}<r><t>${word()}</t></r>${"</e></sSup>".repeat(400)}</oMath></w:p>`
          )
        )
    }
  ],
  xlsx: [
    make.workbook({ S: rows(100, (row, column) => `<c r="${column}${row}"><v>1</v></c>`) }),
    {
      "a million cells": () =>
        make.workbook(
          { S: rows(100_000, (row, column) => `<c r="${column}${row}" t="s"><v>${(row * 7) % 300_000}</v></c>`) },
          { texts: times(300_000, () => `<si><t>${word()}</t></si>`) }
        ),
      "a cell of 7 MB": () =>
        make.workbook({ S: `<row r="1"><c r="A1" t="inlineStr"><is><t>${words(1_000_000)}</t></is></c></row>` })
    }
  ],
  pptx: [
    pptx(1, `<p><t>${words(500)}</t></p>`),
    {
      plain: () => pptx(1_000, `<sp><p><t>${words(500)}</t></p></sp>`),
      "10,000 slides of nothing": () => pptx(10_000, "<p/>"),
      "one slide 300,000 times": () => pptx(1, "<p/>", '<sldId r:id="r0"/>'.repeat(300_000))
    }
  ],
  odt: [
    odt(`<p>${words(500)}</p>`),
    {
      plain: () => odt(times(100_000, () => `<p>${words(10)}</p>`)),
      nested: () => odt("<p>".repeat(250) + words(400_000))
    }
  ],
  ods: [
    odt(`<table><table-row><table-cell><p>${words(5)}</p></table-cell></table-row></table>`, "spreadsheet"),
    {
      plain: () =>
        odt(
          `<table>${times(20_000, () => `<table-row>${times(10, () => `<table-cell><p>${word()}</p></table-cell>`)}</table-row>`)}</table>`,
          "spreadsheet"
        ),
      "cells that stand 16,384 times": () =>
        odt(
          `<table><table-row>${times(50_000, () => `<table-cell number-columns-repeated="16384"><p>${word()}</p></table-cell>`)}</table-row></table>`,
          "spreadsheet"
        ),
      "100,000 comments in a row": () =>
        odt(
          `<table><table-row>${times(100_000, () => `<table-cell><annotation><p>${word()}</p></annotation></table-cell>`)}</table-row></table>`,
          "spreadsheet"
        )
    }
  ],
  rtf: [
    Effect.succeed(`{\\rtf1 ${words(500)}}`),
    {
      plain: () => Effect.succeed(`{\\rtf1 ${times(100_000, () => `${words(10)}\\par\n`)}}`),
      "8,000,000 groups": () => Effect.succeed(`{\\rtf1 ${"{".repeat(8_000_000)}`),
      "1,000,000 fonts": () => Effect.succeed(`{\\rtf1 {\\fonttbl ${times(1_000_000, (i) => `\\f${i}\\fcharset204 `)}}`)
    }
  ],
  epub: [
    epub(1, `<p>${words(500)}</p>`),
    {
      plain: () => epub(1_000, `<html><p>${words(500)}</p></html>`),
      "one section 300,000 times": () => epub(1, "<p>x</p>", '<itemref idref="i0"/>'.repeat(300_000))
    }
  ],
  html: [
    Effect.succeed(`<p>${words(500)}`),
    {
      plain: () => Effect.succeed(times(100_000, () => `<p>${words(10)} <b>${word()}</b></p>\n`)),
      "one line": () => Effect.succeed(words(1_000_000)),
      "2,000,000 elements": () => Effect.succeed("<p>".repeat(2_000_000)),
      nested: () => Effect.succeed("<div>".repeat(1_500_000)),
      "700,000 attributes": () => Effect.succeed(`<a ${times(700_000, (i) => `a${i}=1 `)}>y</a>`),
      "an attribute of 8 MB": () => Effect.succeed(`<a href="${"x".repeat(8_000_000)}">y</a>`)
    }
  ],
  csv: [
    Effect.succeed(times(100, () => `${words(10).replaceAll(" ", ",")}\n`)),
    {
      "a million cells": () => Effect.succeed(times(100_000, () => `${words(10).replaceAll(" ", ",")}\n`)),
      "a cell without an end": () => Effect.succeed(`"${words(1_000_000)}`),
      "8,000,000 commas": () => Effect.succeed(",".repeat(8_000_000))
    }
  ],
  ipynb: [
    Effect.succeed(notebook(cell(""))),
    {
      plain: () =>
        Effect.succeed(
          notebook(
            `${times(10_000, () => `${cell(`,"outputs":[{"output_type":"x","text":["${words(100)}"]}]`)},`)}${cell("")}`
          )
        ),
      "2,500,000 objects": () => Effect.succeed(notebook(`${"{},".repeat(2_500_000)}{}`)),
      nested: () => Effect.succeed(notebook(cell(`,"m":${"[".repeat(4_000_000)}${"]".repeat(4_000_000)}`))),
      "2,500,000 lists": () => Effect.succeed(notebook(cell(`,"m":[${"[],".repeat(2_500_000)}[]]`))),
      "250,000 cells": () => Effect.succeed(notebook(`${`${cell("")},`.repeat(250_000)}${cell("")}`))
    }
  ],
  eml: [
    Effect.succeed(mail(words(500))),
    {
      plain: () => Effect.succeed(mail(times(100_000, () => `${words(10)}\r\n`))),
      "8,000,000 lines": () => Effect.succeed(mail("\n".repeat(8_000_000))),
      "400,000 parts": () =>
        Effect.succeed(mail(`${"--b\r\n\r\nx\r\n".repeat(400_000)}--b--`, "Content-Type: multipart/mixed; boundary=b")),
      "lines that may be boundaries": () => Effect.succeed(mail("--\n".repeat(2_500_000))),
      "soft line ends": () =>
        Effect.succeed(mail("=41=\r\n".repeat(1_300_000), "Content-Transfer-Encoding: quoted-printable")),
      "an attachment": () =>
        Effect.succeed(
          mail(
            `${Buffer.alloc(6_000_000, 1).toString("base64").replaceAll(/.{76}/g, "$&\r\n")}\r\n`,
            "Content-Type: application/x\r\nContent-Transfer-Encoding: base64"
          )
        ),
      "elements of a page": () => Effect.succeed(mail("<p>x".repeat(2_000_000), "Content-Type: text/html"))
    }
  ],
  pdf: [
    make.pdf(["one"]),
    {
      plain: () => make.pdf(Array.from({ length: 1_000 }, () => words(20))),
      "a page that unpacks to 200 MB": () => Effect.sync(() => make.packed(new Uint8Array(200_000_000).fill(0x20))),
      nested: () => Effect.succeed(`%PDF-1.7\n1 0 obj ${"[".repeat(8_000_000)}`),
      "a million pages": () =>
        Effect.succeed(
          `%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[${"3 0 R ".repeat(1_000_000)}]/Count 1000000>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 3 3]>>endobj\ntrailer<</Root 1 0 R>>\n`
        )
    }
  ]
}

/** The report of a process: its memory in bytes, and the characters of the text, or the failure. */
interface Outcome {
  readonly peak: number
  readonly total?: number
  readonly reason?: string
}

const child = fileURLToPath(new URL("memory.child.mjs", import.meta.url))

/** The outcome of a document in a process whose heap may grow by ten times its size, and not more. */
const measured = (format: string, small: Bytes, large: Bytes) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "memory-"))),
    (folder) =>
      Effect.callback<Outcome & { readonly size: number }>((resume) => {
        const files = [join(folder, "small"), join(folder, "large")]
        for (const [index, bytes] of [small, large].entries()) writeFileSync(files[index] ?? "", bytes)
        const size = Buffer.byteLength(large)
        const heap = Math.ceil((10 * size + alwaysOf(format)) / 1_000_000) + 16
        // The flag would take the place of the limit that the thread of a PDF has.
        const limited = format === "pdf" ? [] : [`--max-old-space-size=${heap}`]
        const flags = ["--expose-gc", "--max-semi-space-size=1", ...limited]
        const running = execFile(
          process.execPath,
          [...flags, "--conditions=@effect-deepagents/source", child, format, ...files],
          (error, stdout, stderr) => {
            if (error === null) resume(Effect.succeed({ ...(JSON.parse(stdout) as Outcome), size }))
            else resume(Effect.die(new Error(`${error.message} ${stderr.slice(-500)}`)))
          }
        )
        return Effect.sync(() => running.kill("SIGKILL"))
      }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

for (const [nth, [format, [small, large]]] of Object.entries(documents).entries()) {
  describe(format, () => {
    for (const [index, [name, of]] of Object.entries(large).entries()) {
      it.live.runIf(isFull || (index === 1 && nth % 6 === 3))(
        name,
        () =>
          Effect.gen(function* () {
            const { peak, reason, size, total = 0 } = yield* measured(format, yield* small, yield* of())
            // Real documents are read: an early failure would take no memory either.
            if (index === 0) assert.isAbove(total, 10_000, reason)
            assert.isBelow(peak, 10 * size + alwaysOf(format))
          }),
        120_000
      )
    }
  })
}
