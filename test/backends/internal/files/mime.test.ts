import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { decodeText, mimeTypeOf } from "../../../../src/backends/internal/files/mime.ts"
import { scaled } from "../../../scale.ts"
import { bytes, text } from "../texts.ts"

const latin1 = (content: string) => Uint8Array.from(content, (char) => char.charCodeAt(0))

describe("mimeTypeOf", () => {
  for (const [path, head, expected] of [
    ["/a.png", "\x89PNG\r\n\x1a\n…", "image/png"],
    ["/a.png", "\xff\xd8\xff\xe0", "image/jpeg"],
    ["/a.txt", "GIF89a", "image/gif"],
    ["/a", "RIFF....WEBP", "image/webp"],
    ["/a.pdf", "%PDF-1.7", "application/pdf"],
    ["/a.PDF", "\0", "application/pdf"],
    ["/a.docx", "PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
    ["/a.unknown", "PK\x03\x04", "application/zip"],
    ["/a.mov", "\0\0\0 ftypqt  ", "video/quicktime"],
    ["/a.m4a", "\0\0\0 ftypM4A ", "audio/mp4"],
    ["/a.heic", "\0\0\0 ftypheic", "image/heic"],
    ["/a", "\0\0\0\0", "application/octet-stream"],
    ["/a.constructor", "\0", "application/octet-stream"],
    ["/a.__proto__", "\0", "application/octet-stream"],
    ["/png", "\0", "application/octet-stream"],
    ["/a.png/b", "\0", "application/octet-stream"]
  ] as const) {
    it(`${path} that begins with ${JSON.stringify(head)} is ${expected}`, () => {
      assert.strictEqual(mimeTypeOf(path, latin1(head)), expected)
    })
  }
})

describe("decodeText", () => {
  it("gives text that has the same bytes, or NotText", () => {
    fc.assert(
      fc.property(bytes(), (content) => {
        Result.match(decodeText("/a", content), {
          onSuccess: (text) => assert.deepStrictEqual(new TextEncoder().encode(text), content),
          onFailure: (reason) => assert.strictEqual(reason._tag, "NotText")
        })
      }),
      { numRuns: scaled(1_000) }
    )
  })

  it("gives the text of any text", () => {
    fc.assert(
      fc.property(text(), (content) => {
        const decoded = decodeText("/a", new TextEncoder().encode(content))
        assert.deepStrictEqual(Result.getSuccess(decoded), Result.getSuccess(Result.succeed(content)))
      })
    )
  })

  it("finds bytes that are not UTF-8 behind the sniffed part, and a cut end, so that an edit never spoils a byte", () => {
    for (const tail of [[0xff], [0xe2, 0x82], [0xc0, 0x80]]) {
      const content = new Uint8Array([...new Uint8Array(9_000).fill(0x61), ...tail])
      assert.deepStrictEqual(Result.merge(decodeText("/a.bin", content)), {
        _tag: "NotText",
        mimeType: "application/octet-stream"
      })
    }
  })
})
