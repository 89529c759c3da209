/** Checks reads: windows with line numbers, all line endings, binary files. */
import * as Effect from "effect/Effect"
import type { Service, TextFile, Window } from "../../../../core/Backend.ts"
import { fails, assert, expect, assertWithin } from "../assert.ts"
import { readBytes, bytesOf, runWithoutDefect, putFiles, readText, rule, type Rules, hasSameBytes } from "./common.ts"
import { byteLength } from "./paths.ts"

const windowBytes = 256 * 1024

const windowOf = ({ endLine, startLine, text, totalLines }: TextFile) => ({ text, startLine, endLine, totalLines })

/** Reads a whole file page by page. */
const pages = Effect.fnUntraced(function* (backend: Service, path: string, limit?: number) {
  let text = ""
  let window: Window = { limit }
  for (let count = 0; count < 1000; count++) {
    const page = yield* readText(backend, path, window)
    yield* assert(byteLength(page.text) <= windowBytes, "a window has at most 256 KiB", byteLength(page.text))
    yield* assert(page.text.isWellFormed(), "a window cuts no character", page.text.slice(-2))
    const moved = page.endLine >= page.startLine && (page.text !== "" || page.nextColumn === undefined)
    yield* assert(moved, "a window before the end has something in it", { ...page, text: page.text.slice(0, 20) })
    text += page.text
    if (page.nextColumn === undefined && page.endLine >= page.totalLines) return text
    if (page.nextColumn === undefined) text += "\n"
    window = {
      ...window,
      offset: page.nextColumn === undefined ? page.endLine + 1 : page.endLine,
      column: page.nextColumn ?? 0
    }
  }
  return yield* assert(false, "a file is read in a bounded number of windows", "1,000 windows were not enough")
})

/** Texts with their lines. A final line ending begins no line. */
const endings: ReadonlyArray<readonly [content: string, lines: ReadonlyArray<string>]> = [
  ["", []],
  ["\n", [""]],
  ["\n\n", ["", ""]],
  [" ", [" "]],
  [" \t\n  ", [" \t", "  "]],
  ["one", ["one"]],
  ["one\n", ["one"]],
  ["one\ntwo", ["one", "two"]],
  ["one\r\ntwo\r\n", ["one", "two"]],
  ["one\r\ntwo\nthree\rfour", ["one", "two", "three", "four"]],
  ["\r\n\n\r", ["", "", ""]],
  ["one\n\r\ntwo", ["one", "", "two"]],
  ["one\r\r\ntwo", ["one", "", "two"]],
  ["form\ffeed\u2028separator\u0085next\vtab", ["form\ffeed\u2028separator\u0085next\vtab"]]
]

const readsLines = Effect.fnUntraced(function* (backend: Service) {
  for (const [index, [content, lines]] of endings.entries()) {
    const path = `/${index}.txt`
    yield* backend.write(path, content)
    const window = yield* readText(backend, path)
    const label = JSON.stringify(content)
    yield* expect(
      windowOf(window),
      { text: lines.join("\n"), startLine: 1, endLine: lines.length, totalLines: lines.length },
      `the lines of ${label}`
    )
    yield* expect(window.size, byteLength(content), `the bytes of ${label}`)
    yield* assert(
      hasSameBytes(yield* readBytes(backend, path), bytesOf(content)),
      `${label} is kept byte for byte`,
      content
    )
  }
})

const twelve = Array.from({ length: 12 }, (_, index) => `line ${index + 1}`)

const windows: ReadonlyArray<readonly [window: Window, from: number, to: number]> = [
  [{}, 1, 12],
  [{ offset: 1 }, 1, 12],
  [{ offset: 5, limit: 3 }, 5, 7],
  [{ offset: 11, limit: 50 }, 11, 12],
  [{ offset: 12, limit: 1 }, 12, 12],
  [{ limit: 2 }, 1, 2]
]

const readsWindows = Effect.fnUntraced(function* (backend: Service) {
  for (const ending of ["\n", "\r\n", "\r"]) {
    yield* backend.write("/twelve.txt", twelve.join(ending) + ending)
    for (const [window, from, to] of ending === "\n" ? windows : windows.slice(2, 4)) {
      yield* expect(
        windowOf(yield* readText(backend, "/twelve.txt", window)),
        { text: twelve.slice(from - 1, to).join("\n"), startLine: from, endLine: to, totalLines: 12 },
        `the window ${JSON.stringify(window)}`
      )
    }
    for (const window of [{ limit: 0 }, { offset: 4, limit: 0 }, { offset: 13 }, { offset: 1000, limit: 5 }]) {
      const none = yield* readText(backend, "/twelve.txt", window)
      yield* assert(
        none.endLine < none.startLine && none.text === "" && none.totalLines === 12,
        `the window ${JSON.stringify(window)} has no lines, and says that there are 12`,
        none
      )
    }
    const tail = yield* readText(backend, "/twelve.txt", { offset: 2, limit: 2, column: 3 })
    yield* expect(tail.text, "e 2\nline 3", "`column` skips characters of the first line only")
  }
  const numbers = [0, -1, -1e9, 1.5, Number.NaN, Infinity, -Infinity, 1e308, Number.MAX_SAFE_INTEGER]
  for (const number of numbers)
    for (const window of [{ offset: number }, { limit: number }, { column: number }])
      yield* runWithoutDefect(backend.read("/twelve.txt", window), `the window ${Object.keys(window)[0]} ${number}`)
})

/** A text whose line ends and characters cross the ends of chunks of 4, 8, 16, 32 and 64 KiB. */
const boundaries = (): string => {
  let text = ""
  for (const size of [4096, 8192, 16384, 32768, 65536, 131072]) {
    text += "x".repeat(size - 1 - byteLength(text)) + "\r\n"
    text += "é\u{1F600}".repeat(3) + "\n"
  }
  return text
}

/** Checks of reads. */
export const readRules: Rules<Service> = [
  ["read gives lines, whatever their endings", readsLines],
  ["read gives windows, with line numbers that are right", readsWindows],
  rule("read gives 2,000 lines unless told otherwise", function* (backend) {
    yield* backend.write("/many.txt", Array.from({ length: 2500 }, (_, index) => String(index)).join("\n"))
    const window = yield* readText(backend, "/many.txt")
    yield* expect([window.startLine, window.endLine, window.totalLines], [1, 2000, 2500], "the default window")
    yield* expect(
      (yield* readText(backend, "/many.txt", { limit: 2400 })).endLine,
      2400,
      "a window may be longer than the default"
    )
  }),
  rule("no window has more than 256 KiB, and all windows together have all of the text", function* (backend) {
    const long = "aé日\u{1F600}".repeat(40_000)
    const text = ["short", long, "", "x".repeat(300_000), "y".repeat(windowBytes), "end"].join("\n")
    yield* backend.write("/long.txt", text)
    yield* assert((yield* pages(backend, "/long.txt")) === text, "pages give the text", "another text")
    const wide = Array.from({ length: 3000 }, (_, index) => `${index} ${"é".repeat(200)}`).join("\n")
    yield* backend.write("/wide.txt", wide)
    yield* assert((yield* pages(backend, "/wide.txt", 5000)) === wide, "pages of many lines give the text", "another")
  }),
  rule("line endings and characters are whole wherever they lie", function* (backend) {
    const text = boundaries()
    yield* backend.write("/chunks.txt", text)
    const window = yield* readText(backend, "/chunks.txt")
    yield* assert(
      window.text === text.replace(/\r\n/g, "\n").slice(0, -1),
      "the text is as written",
      window.text.length
    )
    yield* expect([window.totalLines, window.endLine], [12, 12], "its lines are counted")
  }),
  rule("a byte order mark is kept", function* (backend) {
    yield* backend.write("/bom.txt", "\uFEFFname,age\nAda,36\n")
    const window = yield* readText(backend, "/bom.txt")
    yield* assert(/^\uFEFF?name,age\nAda,36$/.test(window.text), "the text is read", window.text)
    yield* backend.edit("/bom.txt", [{ old: "Ada,36", new: "Ada,37" }])
    yield* expect((yield* readBytes(backend, "/bom.txt")).slice(0, 4), [0xef, 0xbb, 0xbf, 0x6e], "its bytes")
  }),
  rule("UTF-16 with a mark and Windows-1252 are text, and an edit keeps their bytes", function* (backend) {
    const latin = [0x63, 0x61, 0x66, 0xe9, 0x0a]
    const wide = [0xff, 0xfe, 0x61, 0x00, 0xe9, 0x00]
    yield* putFiles(backend, { "/latin.txt": new Uint8Array(latin), "/utf16.txt": new Uint8Array(wide) })
    yield* expect((yield* readText(backend, "/latin.txt")).text, "caf\u00e9", "the text of Windows-1252")
    yield* expect((yield* readText(backend, "/utf16.txt")).text, "a\u00e9", "the text of UTF-16")
    yield* backend.edit("/latin.txt", [{ old: "ca", new: "gi" }])
    yield* backend.edit("/utf16.txt", [{ old: "a", new: "b" }])
    yield* expect([...(yield* readBytes(backend, "/latin.txt"))], [0x67, 0x69, ...latin.slice(2)], "its bytes")
    yield* expect([...(yield* readBytes(backend, "/utf16.txt"))], [0xff, 0xfe, 0x62, ...wide.slice(3)], "its bytes")
  }),
  rule("what is no text is binary", function* (backend) {
    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52])
    const controls = new Uint8Array([0x63, 0x61, 0x01, 0xe9, 0x0a])
    const unmarked = new Uint8Array([0x61, 0x00, 0x62, 0x00])
    const lateNul = bytesOf(`${"x".repeat(8000)}\0`)
    yield* putFiles(backend, {
      "/a.png": png,
      "/a.txt": png,
      "/controls.txt": controls,
      "/utf16.txt": unmarked,
      "/late.dat": lateNul
    })
    for (const path of ["/a.png", "/controls.txt", "/utf16.txt", "/late.dat"]) {
      const file = yield* backend.read(path)
      yield* expect(file.kind, "binary", path)
      yield* fails(backend.edit(path, [{ old: "a", new: "b" }]), `an edit of ${path}`, "NotText")
    }
    for (const path of ["/a.png", "/a.txt"]) {
      const image = yield* backend.read(path)
      yield* assert(image.kind === "binary" && image.mimeType === "image/png", `a PNG is image/png in ${path}`, image)
      yield* expect(image.size, png.length, "its size")
    }
  }),
  rule("a character that is cut where looking for binary ends is no reason to call a text binary", function* (backend) {
    for (const shift of [0, 1, 2, 3]) {
      yield* backend.write(`/${shift}.txt`, `${"x".repeat(8192 - shift)}\u{1F600}日本語é`)
      yield* expect((yield* backend.read(`/${shift}.txt`)).kind, "text", `${shift} bytes before`)
    }
  }),
  rule("an edit changes no byte that it is not about, in a text with bytes that are not UTF-8", function* (backend) {
    const bytes = new Uint8Array([...bytesOf(`first\n${"x\n".repeat(6000)}`), 0xff, 0xe9, 0x0a])
    yield* putFiles(backend, { "/odd.txt": bytes })
    yield* runWithoutDefect(backend.edit("/odd.txt", [{ old: "first", new: "FIRST" }]), "an edit of odd bytes")
    const after = yield* readBytes(backend, "/odd.txt")
    yield* expect(after.slice(-4), bytes.slice(-4), "the odd bytes are kept")
  }),
  rule("read fails for what is no file", function* (backend) {
    yield* putFiles(backend, { "/d/f": "x" })
    yield* fails(backend.read("/none"), "read of nothing", "NotFound")
    yield* fails(backend.read("/none/at/all"), "read in no folder", "NotFound")
    yield* fails(backend.read("/d/f/g"), "read through a file", "NotFound", "NotDirectory")
    yield* fails(backend.read("/d"), "read of a folder", "IsDirectory")
    yield* fails(backend.read("/"), "read of the root", "IsDirectory")
  }),
  rule("an edit of a large file that does not match is diagnosed in bounded time", function* (backend) {
    yield* putFiles(backend, { "/large.txt": "a line like any other, more or less\n".repeat(250_000) })
    const old = Array.from({ length: 200 }, (_, index) => `a line like no other, more or less ${index}`).join("\n")
    yield* assertWithin(
      10_000,
      "an edit that does not match",
      fails(backend.edit("/large.txt", [{ old, new: "" }]), "it", "NoMatch")
    )
  })
]
