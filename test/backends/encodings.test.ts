/** Text files in other encodings than UTF-8, and edits whose text is there but for typography. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import fc from "fast-check"
import { decodeOther, encodeFile } from "../../src/backends/internal/text/encoding.ts"
import { findTolerantly } from "../../src/backends/internal/text/tolerant.ts"
import { scaled } from "../scale.ts"

const latin = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0))

const utf16 = (text: string, isLittle: boolean): Uint8Array => {
  const bytes = Buffer.from(`\ufeff${text}`, "utf16le")
  return Uint8Array.from(isLittle ? bytes : bytes.swap16())
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const line = "Grüße an José, ça va?\r\nzweite Zeile\r\n"

/** The bytes of a text in six encodings. */
const encodings: ReadonlyArray<readonly [string, (text: string) => Uint8Array]> = [
  ["UTF-8", utf8],
  ["UTF-8 with a mark", (text) => utf8(`\ufeff${text}`)],
  ["UTF-16, little", (text) => utf16(text, true)],
  ["UTF-16, big", (text) => utf16(text, false)],
  ["Latin-1", latin],
  ["Windows-1252", (text) => latin(text.replaceAll("€", "\u0080").replaceAll("“", "\u0093"))]
]

const withFile = (bytes: Uint8Array) =>
  Effect.gen(function* () {
    const backend = yield* Backend.Backend
    yield* backend.upload([{ path: "/a.txt", content: bytes }])
    return backend
  })

const bytesOf = (backend: Backend.Service) =>
  Effect.map(backend.download(["/a.txt"]), ([file]) => (file?.ok === true ? [...file.value] : []))

describe("a file in another encoding", () => {
  for (const [name, encode] of encodings) {
    it.effect(`is read and edited, and stays as it was: ${name}`, () =>
      Effect.gen(function* () {
        const text = name === "Windows-1252" ? line.replace("va?", "va? 5 € “") : line
        const backend = yield* withFile(encode(text))
        const file = yield* backend.read("/a.txt")
        assert.strictEqual(file.kind === "text" ? file.text : file.mimeType, text.replaceAll("\r\n", "\n").trimEnd())
        yield* backend.edit("/a.txt", [{ old: "zweite Zeile\n", new: "dritte Straße\nEnde\n" }], {
          version: file.version
        })
        const after = text.replace("zweite Zeile\r\n", "dritte Straße\r\nEnde\r\n")
        assert.deepStrictEqual(yield* bytesOf(backend), [...encode(after)])
      }).pipe(Effect.provide(MemoryBackend.layer()))
    )
  }

  it.effect("refuses an unencodable character by name; binary files stay binary", () =>
    Effect.gen(function* () {
      const backend = yield* withFile(latin("caf\u00e9 au lait\n"))
      const error = yield* Effect.flip(backend.edit("/a.txt", [{ old: "lait", new: "日本" }]))
      assert.match(error.message, /windows-1252, which has no "日"/)
      assert.deepStrictEqual(yield* bytesOf(backend), [...latin("caf\u00e9 au lait\n")])
      for (const bytes of [
        [0xff, 0xfe, 0, 0, 0x41, 0],
        [0xff, 0xfe, 1],
        [1, 2, 3, 0xe9],
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1]
      ]) {
        yield* backend.upload([{ path: "/a.txt", content: Uint8Array.from(bytes) }])
        assert.strictEqual((yield* backend.read("/a.txt")).kind, "binary", bytes.join())
      }
    }).pipe(Effect.provide(MemoryBackend.layer()))
  )

  it("encodes all that it decodes to the same bytes", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 60 }),
      fc.string().map((text) => utf16(text, text.length % 2 === 0)),
      fc.string({ unit: fc.constantFrom(..."aaaaé\u0081ü\u0093\n") }).map(latin)
    )
    let decoded = 0
    fc.assert(
      fc.property(bytes, (given) => {
        const found = decodeOther("a.txt", given)
        if (found === undefined) return
        decoded++
        assert.deepStrictEqual(Result.getOrThrow(encodeFile(found.text, found.encoding)), given)
      }),
      { numRuns: scaled(2_000) }
    )
    assert.isAbove(decoded, 50)
  })
})

/** Applies a change as an edit would. */
const applied = (file: string, old: string, next: string): string | undefined => {
  const change = findTolerantly(file, old, next)
  return change === undefined ? undefined : file.slice(0, change.from) + change.text + file.slice(change.to)
}

describe("an edit that fits but for typography", () => {
  it("is applied, and leaves the file's own characters where nothing changes", () => {
    const cases: ReadonlyArray<readonly [string, string, string, string | undefined]> = [
      ["say “hello world” now", 'say "hello world"', 'say "hello there"', "say “hello there” now"],
      ["a – b; c", "a - b", "a - d", "a – d; c"],
      ["x = 1;  \ny = 2;\n", "x = 1;\ny = 2;", "x = 1;\ny = 3;", "x = 1;  \ny = 3;\n"],
      ["10\u00a0000 items", "10 000 items", "20 000 items", "20\u00a0000 items"],
      ["cafe\u0301 noir", "caf\u00e9 noir", "caf\u00e9 blanc", "cafe\u0301 blanc"],
      ["caf\u00e9 noir", "cafe\u0301 noir", "cafe\u0301 blanc", "caf\u00e9 blanc"],
      ["wait… what", "wait... what", "wait... who", "wait… who"],
      // Two places, a place inside of a character, case, indentation and too little text are no fit.
      ["“a b” and “a b”", '"a b"', '"c"', undefined],
      ["wait… what", "wait.. what", "wait", undefined],
      ["Say “Hello”", 'say "hello"', "x", undefined],
      ["  if “x”", '    if "x"', "y", undefined],
      ["“a”", '"a"', "b", undefined]
    ]
    for (const [file, old, next, expected] of cases) assert.strictEqual(applied(file, old, next), expected, file)
  })

  it("never touches anything else", () => {
    const words = fc.array(
      fc.constantFrom("“", '"', "’", "'", "–", "-", " ", "\u00a0", "é", "e\u0301", "a", "b", "\n", " \n", "…"),
      {
        maxLength: 12
      }
    )
    let fits = 0
    fc.assert(
      fc.property(words, words, words, (before, middle, after) => {
        const inside = `[${middle.join("")}]`
        const file = `${before.join("")}<${inside}>${after.join("")}`
        const old = inside.replaceAll(/[“]/g, '"').replaceAll("’", "'").replaceAll("–", "-").normalize("NFC")
        const result = applied(file, old, "done")
        if (result === undefined) return
        fits++
        assert.strictEqual(result, `${before.join("")}<done>${after.join("")}`)
      }),
      { numRuns: scaled(2_000) }
    )
    assert.isAbove(fits, 50)
  })

  it.effect("is said in the result; an exact text comes first", () =>
    Effect.gen(function* () {
      const backend = yield* withFile(utf8('“one thing”\n"one thing" – two\n'))
      const exact = yield* backend.edit("/a.txt", [{ old: '"one thing"', new: '"1 thing"' }])
      assert.notProperty(exact, "isInexact")
      const inexact = yield* backend.edit("/a.txt", [{ old: '"1 thing" - two', new: '"1 thing" - 2' }])
      assert.deepInclude(inexact, { isInexact: true, lines: [2], replaced: 1 })
      const file = yield* backend.read("/a.txt")
      assert.strictEqual(file.kind === "text" ? file.text : "", '“one thing”\n"1 thing" – 2')
    }).pipe(Effect.provide(MemoryBackend.layer()))
  )
})
