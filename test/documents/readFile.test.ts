/** Documents by `read_file`, on a backend. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FileTools } from "effect-deepagents/backends"
import { Documents } from "effect-deepagents/documents"
import { after, type Call, edit, readCall } from "../backends/converse.ts"
import * as make from "./make.ts"

const file = (name: string) => new Uint8Array(readFileSync(new URL(`files/${name}`, import.meta.url)))

const tools = FileTools.make({ documents: Documents.formats })

const answersOf = (files: Readonly<Record<string, string | Uint8Array>>, calls: ReadonlyArray<Call>) =>
  Effect.map(
    after(
      files,
      calls.map((call) => [call]),
      { tools }
    ),
    ({ answers }) => answers.map(({ isError, text }) => (isError ? `ERROR ${text}` : text))
  )

describe("read_file of documents", () => {
  it.effect("gives numbered lines with marks of parts, says how to go on, and is a source", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(["Page one", "Page two", "Page three"])
      const [first, rest, third] = yield* answersOf({ "/a.pdf": bytes }, [
        readCall("/a.pdf", { limit: 2 }),
        readCall("/a.pdf", { offset: 3 }),
        readCall("/a.pdf", { page: 3 })
      ])
      assert.include(
        first,
        "   1\t--- page 1 ---\n   2\tPage one\n[the text of this PDF, lines 1–2; there is more: go on with offset 3]"
      )
      assert.include(first, "[1] a.pdf, /a.pdf")
      assert.include(rest, "   3\t--- page 2 ---\n")
      assert.include(rest, "lines 3–6; this is the end]")
      assert.include(
        third,
        "   1\t--- page 3 ---\n   2\tPage three\n[the text of this PDF, lines 1–2, counted from part 3;"
      )
    })
  )

  it.effect("counts from the end, of documents and of texts", () =>
    Effect.gen(function* () {
      const [docx, text, most] = yield* answersOf({ "/a.docx": file("python-docx.docx"), "/t.txt": "a\nb\nc\n" }, [
        readCall("/a.docx", { offset: -2 }),
        readCall("/t.txt", { offset: -2 }),
        readCall("/t.txt", { offset: -20 })
      ])
      assert.match(docx ?? "", /^ 205\tAda \| 36\n 206\tAfter the break\n\[.*lines 205–206; this is the end\]/)
      assert.include(text, "   2\tb\n   3\tc")
      assert.notInclude(text, "\ta\n")
      assert.include(most, "   1\ta\n   2\tb\n   3\tc")
    })
  )

  it.effect("shows pages and tables as they are written, unless the document is asked for; mail as a document", () =>
    Effect.gen(function* () {
      const html = "<!doctype html>\n<p>Hello"
      const mail = "From: a@b.c\nSubject: S\n\nHello"
      const [source, page, letter, raw] = yield* answersOf({ "/a.html": html, "/m.eml": mail }, [
        readCall("/a.html"),
        readCall("/a.html", { raw: false }),
        readCall("/m.eml"),
        readCall("/m.eml", { raw: true })
      ])
      assert.include(source, "   2\t<p>Hello")
      assert.include(page, "   1\tHello\n[the text of this page")
      assert.include(letter, "   2\tSubject: S\n   3\tHello\n[the text of this mail")
      assert.include(raw, "   3\t\n   4\tHello")
    })
  )

  it.effect("does not let a file be changed of which only the document was seen", () =>
    Effect.gen(function* () {
      const mail = "From: a@b.c\n\nHello"
      const [, refused, , done] = yield* answersOf({ "/m.eml": mail }, [
        readCall("/m.eml"),
        edit("/m.eml", "Hello", "Bye"),
        readCall("/m.eml", { raw: true }),
        edit("/m.eml", "Hello", "Bye")
      ])
      assert.include(refused, "ERROR")
      assert.notInclude(done, "ERROR")
    })
  )

  it.effect("reports the problem of an unreadable document", () =>
    Effect.gen(function* () {
      const [locked, broken] = yield* answersOf(
        { "/p.pdf": file("password.pdf"), "/a.docx": file("python-docx.docx").subarray(0, 9_000) },
        [readCall("/p.pdf"), readCall("/a.docx")]
      )
      assert.include(locked, "ERROR /p.pdf can't be read as a PDF: it needs a password")
      assert.include(broken, "ERROR /a.docx can't be read as a Word document: it is no whole archive")
    })
  )

  it.effect("reads a document whose name says something else", () =>
    Effect.gen(function* () {
      const [text] = yield* answersOf({ "/a.docx": file("openpyxl.xlsx") }, [readCall("/a.docx")])
      assert.include(text, '--- sheet "Prices" ---')
    })
  )
})

it.effect("a recording is given to the model as it is", () =>
  Effect.gen(function* () {
    const wav = Uint8Array.from(Buffer.from("RIFF\0\0\0\0WAVEfmt \0\0", "latin1"))
    const { answers } = yield* after({ "/a.wav": wav }, [[readCall("/a.wav")]], { supportsVision: false })
    const [, block] = answers[0]?.content ?? []
    assert.deepInclude(block, { type: "file", name: "a.wav" })
  })
)
