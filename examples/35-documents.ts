/**
 * Office documents: an agent reads a folder of them, a Word document, a workbook, a mail and a page, and writes a report
 * that cites them by number. The documents are made here, by hand, so that you see what they are.
 */
import assert from "node:assert/strict"
import { Effect, Stream } from "effect"
import { Agent, Backend, Sources } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { Documents } from "effect-deepagents/documents"
import { TestChatModel } from "effect-deepagents/testing"
import { Artifacts } from "effect-deepagents/workspace"
import { Zip } from "effect/encoding"
import { chooseModel } from "./shared/model.ts"
import { main } from "./shared/run.ts"

const analyst = DeepAgent.make({
  name: "analyst",
  prompt:
    "You read the documents in /inbox, and write a report that cites each of them by its number, with page or sheet.",
  documents: Documents.formats,
  tools: [Artifacts.make()],
  todos: false,
  generalPurpose: false
})

const archive = (parts: Record<string, string>) =>
  Stream.fromIterable(Object.entries(parts)).pipe(
    Stream.map(([path, content]) => Zip.file(path, content)),
    Stream.pipeThroughChannel(Zip.encode()),
    Stream.runCollect,
    Effect.map((chunks) => new Uint8Array(Buffer.concat(chunks)))
  )

const paragraph = (text: string, style = "Normal") =>
  `<w:p><w:pPr><w:pStyle w:val="${style}"/></w:pPr><w:r><w:t>${text}</w:t></w:r></w:p>`

const plan = archive({
  "word/document.xml": `<w:document><w:body>${paragraph("Plan for 2027", "Heading1")}${paragraph("We open a shop in Ulm in May.")}</w:body></w:document>`
})

const cell = (at: string, value: string | number) =>
  typeof value === "number"
    ? `<c r="${at}"><v>${value}</v></c>`
    : `<c r="${at}" t="inlineStr"><is><t>${value}</t></is></c>`

const budget = archive({
  "xl/workbook.xml": '<workbook xmlns:r="r"><sheets><sheet name="Costs" sheetId="1" r:id="a"/></sheets></workbook>',
  "xl/_rels/workbook.xml.rels":
    '<Relationships><Relationship Id="a" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
  "xl/worksheets/sheet1.xml": `<worksheet><sheetData><row r="1">${cell("A1", "Rent")}${cell("B1", 1200)}</row><row r="2">${cell("A2", "Wages")}${cell("B2", 4300)}</row></sheetData></worksheet>`
})

const mail = "From: Ada <ada@example.com>\r\nSubject: Ulm\r\n\r\nThe landlord agrees, from May on.\r\n"

const page = "<!doctype html><title>Ulm</title><h1>Ulm</h1><p>A town of 128,928 people on the Danube.</p>"

const script = TestChatModel.script([
  TestChatModel.calls([
    { name: "read_file", arguments: { file_path: "/inbox/plan.docx" } },
    { name: "read_file", arguments: { file_path: "/inbox/budget.xlsx" } },
    { name: "read_file", arguments: { file_path: "/inbox/landlord.eml" } },
    { name: "read_file", arguments: { file_path: "/inbox/ulm.html", raw: false } }
  ]),
  TestChatModel.calls([
    {
      name: "create_artifact",
      arguments: {
        name: "report.md",
        title: "The shop in Ulm",
        content: [
          "# The shop in Ulm",
          "We open in May [1]; the landlord agrees [3]. It costs 5,500 a month [2, sheet Costs].",
          "Ulm has 128,928 people [4]."
        ].join("\n")
      }
    }
  ]),
  "The report is done."
])

const program = Effect.gen(function* () {
  const backend = yield* Backend.Backend
  yield* backend.upload([
    { path: "/inbox/plan.docx", content: yield* plan },
    { path: "/inbox/budget.xlsx", content: yield* budget }
  ])
  yield* backend.write("/inbox/landlord.eml", mail)
  yield* backend.write("/inbox/ulm.html", page)

  const model = yield* chooseModel(script)
  const result = yield* Agent.run(analyst, "What do we know about the shop?").pipe(Effect.provide(model.layer))
  const sources = Sources.of(result)
  const [report] = Artifacts.of(result)
  const read = yield* backend.read(report?.path ?? "/artifacts/report.md")
  console.log(read.kind === "text" ? read.text : read.mimeType)
  console.log(`\n${Sources.render(sources)}`)
  if (model.isScripted) assert.equal(sources.length, 4)

  // The same documents without an agent.
  const { text } = yield* Documents.text({ bytes: yield* budget })
  assert.equal(text, '--- sheet "Costs" ---\n1: Rent | 1200\n2: Wages | 4300')
})

main(program.pipe(Effect.provide(MemoryBackend.layer())))
