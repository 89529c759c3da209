/** Documents that are made in the test: archives of parts, PDFs. */
import { deflateSync } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Zip from "effect/encoding/Zip"
import * as Stream from "effect/Stream"
import { PDFDocument } from "pdf-lib"

const joinBytes = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat(chunks))

/** An archive with these parts, in this order. */
export const archive = (parts: { readonly [path: string]: string | Uint8Array }): Effect.Effect<Uint8Array> =>
  Stream.fromIterable(Object.entries(parts)).pipe(
    Stream.map(([path, content]) => Zip.file(path, content)),
    Stream.pipeThroughChannel(Zip.encode()),
    Stream.runCollect,
    Effect.map(joinBytes),
    Effect.orDie
  )

const rels = (targets: ReadonlyArray<readonly [string, string, string]>): string =>
  `<Relationships>${targets.map(([id, type, target]) => `<Relationship Id="${id}" Type="http://x/${type}" Target="${target}"/>`).join("")}</Relationships>`

/** A workbook of sheets, whose rows are given as XML. */
export const workbook = (
  sheets: { readonly [name: string]: string },
  more: { readonly texts?: string; readonly styles?: string; readonly date1904?: boolean } = {}
): Effect.Effect<Uint8Array> => {
  const names = Object.keys(sheets)
  return archive({
    ...Object.fromEntries(
      names.map((name, index) => [
        `xl/worksheets/sheet${index}.xml`,
        `<worksheet><sheetData>${sheets[name]}</sheetData></worksheet>`
      ])
    ),
    "xl/sharedStrings.xml": `<sst>${more.texts ?? ""}</sst>`,
    "xl/styles.xml": `<styleSheet>${more.styles ?? ""}</styleSheet>`,
    "xl/_rels/workbook.xml.rels": rels([
      ...names.map((_, index) => [`rId${index}`, "worksheet", `worksheets/sheet${index}.xml`] as const),
      ["s", "sharedStrings", "sharedStrings.xml"],
      ["t", "styles", "styles.xml"]
    ]),
    "xl/workbook.xml": `<workbook xmlns:r="r"><workbookPr date1904="${more.date1904 === true ? 1 : 0}"/><sheets>${names
      .map((name, index) => `<sheet name="${name}" sheetId="${index}" r:id="rId${index}"/>`)
      .join("")}</sheets></workbook>`
  })
}

/** A Word document with this body. */
export const word = (body: string, more: { readonly [path: string]: string } = {}): Effect.Effect<Uint8Array> =>
  archive({ "word/document.xml": `<w:document xmlns:w="w"><w:body>${body}</w:body></w:document>`, ...more })

/** A PDF of so many pages, each with its text; an empty one has none. */
export const pdf = (texts: ReadonlyArray<string>): Effect.Effect<Uint8Array> =>
  Effect.promise(async () => {
    const document = await PDFDocument.create()
    for (const text of texts) {
      const page = document.addPage([300, 300])
      if (text !== "") page.drawText(text, { x: 20, y: 200, size: 12 })
    }
    return document.save()
  })

/** A PDF of one page: object 4 is its content, object 5 its font. */
export const pdfOf = (objects: ReadonlyArray<string | Uint8Array>): Uint8Array =>
  new Uint8Array(
    Buffer.concat(
      [
        "%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n",
        "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n",
        ...objects,
        "\ntrailer<</Root 1 0 R>>\n"
      ].map((part) => Buffer.from(part))
    )
  )

const streamOf = (id: number, content: Uint8Array): ReadonlyArray<string | Uint8Array> => {
  const data = deflateSync(content)
  return [`${id} 0 obj<</Length ${data.length}/Filter/FlateDecode>>stream\n`, data, "\nendstream endobj\n"]
}

/** A PDF of one page whose content is given as it is, and packed. */
export const packed = (content: Uint8Array): Uint8Array =>
  pdfOf(["5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n", ...streamOf(4, content)])

/** A PDF of a few kilobytes whose font maps 20,000 ranges of characters. */
export const manyRanges = (): Uint8Array => {
  const ranges = `100 beginbfrange\n${"<0000> <ffff> <0000>\n".repeat(100)}endbfrange\n`.repeat(200)
  const map = `/CIDInit /ProcSet findresource begin begincmap\n1 begincodespacerange <0000> <ffff> endcodespacerange\n${ranges}endcmap end`
  return pdfOf([
    "5 0 obj<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[7 0 R]>>endobj\n",
    "7 0 obj<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor 8 0 R>>endobj\n",
    "8 0 obj<</Type/FontDescriptor/FontName/X/Flags 4/ItalicAngle 0/Ascent 9/Descent 0/CapHeight 9/StemV 1>>endobj\n",
    ...streamOf(6, Buffer.from(map)),
    ...streamOf(4, Buffer.from("BT /F 12 Tf <00410042> Tj ET"))
  ])
}
