/** Checks uploads and downloads: exact bytes, and one outcome for each file, in order. */
import type { Service, Transfer } from "../../../../core/Backend.ts"
import { fails, assert, expect } from "../assert.ts"
import { listFiles, readBytes, bytesOf, putFiles, rule, type Rules, hasSameBytes, readWhole } from "./common.ts"

const outcomes = <A>(transfers: ReadonlyArray<Transfer<A>>): ReadonlyArray<string> =>
  transfers.map((one) => (one.ok ? "ok" : one.error.reason._tag))

/** All bytes, and all pairs that a decoder could misread. */
const everyByte = (): Uint8Array => {
  const bytes = new Uint8Array(65_536 * 2)
  for (let pair = 0; pair < 65_536; pair++) {
    bytes[2 * pair] = pair >> 8
    bytes[2 * pair + 1] = pair & 0xff
  }
  return bytes
}

/** Distinct contents that no text conversion makes equal. */
const noise = (length: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  let state = 1
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}

/** Checks of transfers. */
export const transferRules: Rules<Service> = [
  rule("bytes of any kind come back as they were", function* (backend) {
    const files = {
        "/every.bin": everyByte(), "/noise.bin": noise(1_000_003), "/empty": new Uint8Array(), "/nul": new Uint8Array(1),
        "/newline": bytesOf("\n"), "/newlines": bytesOf("\n\n\n"), "/crlf": bytesOf("a\r\nb\r\n"), "/bom": bytesOf("\uFEFF"),
        "/no-end": bytesOf("a\nb"), "/ctrl": new Uint8Array([4, 26, 27, 3, 13, 10, 0])
      } // prettier-ignore
    yield* putFiles(backend, files)
    const downloads = yield* backend.download(Object.keys(files))
    for (const [index, [path, bytes]] of Object.entries(files).entries()) {
      const one = downloads[index]
      yield* assert(one?.ok === true && one.path === path && hasSameBytes(one.value, bytes), `${path} comes back`, one)
    }
  }),
  rule("a part of a larger buffer is uploaded as that part, and what is changed later is not", function* (backend) {
    const buffer = bytesOf("before|content|after")
    const content = buffer.subarray(7, 14)
    yield* backend.upload([{ path: "/part", content }])
    buffer.fill(0)
    yield* expect(yield* readWhole(backend, "/part"), "content", "the part")
    const bytes = yield* readBytes(backend, "/part")
    bytes.fill(0)
    yield* expect(yield* readWhole(backend, "/part"), "content", "what was downloaded is the caller's own")
  }),
  rule("each file has its own outcome, in the order of the request", function* (backend) {
    yield* putFiles(backend, { "/d/f": "folder" })
    const content = bytesOf("new")
    const paths = ["/z", "/../x", "/d", "/a", "/d/f/g", "a\0b", "/new/folder/file"]
    const uploads = yield* backend.upload(paths.map((path) => ({ path, content })))
    yield* expect(
      outcomes(uploads),
      ["ok", "OutsideRoot", "IsDirectory", "ok", "NotDirectory", "InvalidPath", "ok"],
      "uploads"
    )
    yield* expect(yield* listFiles(backend), ["/a", "/d/f", "/new/folder/file", "/z"], "what could be done was done")
    const downloads = yield* backend.download(["/z", "/none", "/../x", "/d", "/a", "a\0b", "/d/f"])
    yield* expect(
      outcomes(downloads),
      ["ok", "NotFound", "OutsideRoot", "IsDirectory", "ok", "InvalidPath", "ok"],
      "downloads"
    )
    yield* expect(
      downloads.map((one) => (one.ok ? new TextDecoder().decode(one.value) : "")),
      ["new", "", "", "", "new", "", "folder"],
      "each with its own content"
    )
    yield* expect(yield* backend.upload([]), [], "no uploads")
    yield* expect(yield* backend.download([]), [], "no downloads")
  }),
  rule("upload tells new files from others, and gives versions", function* (backend) {
    yield* putFiles(backend, { "/old": "old" })
    const uploads = yield* backend.upload([
      { path: "/old", content: bytesOf("changed") },
      { path: "/new", content: bytesOf("new") }
    ])
    yield* expect(
      uploads.map((one) => (one.ok ? one.value.created : one.error.reason._tag)),
      [false, true],
      "created"
    )
    for (const one of uploads)
      if (one.ok)
        yield* expect((yield* backend.read(one.path)).version, one.value.version, `the version of ${one.path}`)
  }),
  rule("of a path that is uploaded twice the last one counts, and a path may be downloaded twice", function* (backend) {
    const uploads = yield* backend.upload(
      ["/twice", "/once", "//twice", "twice"].map((path, index) => ({ path, content: bytesOf(String(index)) }))
    )
    yield* expect(outcomes(uploads), ["ok", "ok", "ok", "ok"], "all are done")
    yield* expect(yield* readWhole(backend, "/twice"), "3", "the last one")
    const downloads = yield* backend.download(["/twice", "/once", "/twice"])
    yield* expect(
      downloads.map((one) => (one.ok ? new TextDecoder().decode(one.value) : "")),
      ["3", "1", "3"],
      "downloads"
    )
  }),
  rule("hundreds of files go in one request, in order", function* (backend) {
    const paths = Array.from({ length: 300 }, (_, index) => `/many/${(index * 7) % 300}`)
    const uploads = yield* backend.upload(paths.map((path) => ({ path, content: bytesOf(path) })))
    yield* expect(
      uploads.map(({ path }) => path),
      paths,
      "uploads are in the order of the request"
    )
    const downloads = yield* backend.download([...paths].reverse())
    yield* expect(
      downloads.map((one) => (one.ok ? new TextDecoder().decode(one.value) : one.error.reason._tag)),
      [...paths].reverse(),
      "so are downloads"
    )
  })
]

/** Checks of the maximum file size. */
export const sizeRules: Rules<Service, number> = [
  rule("a file over the limit is refused by upload and download, and changes nothing", function* (backend, limit) {
    yield* putFiles(backend, { "/kept": "kept", "/full": new Uint8Array(limit).fill(0x61) })
    const uploads = yield* backend.upload([
      { path: "/kept", content: new Uint8Array(limit + 1) },
      { path: "/new", content: new Uint8Array(limit + 1) },
      { path: "/small", content: bytesOf("x") }
    ])
    yield* expect(outcomes(uploads), ["TooLarge", "TooLarge", "ok"], "uploads")
    const reason = uploads[0]?.ok === false ? uploads[0].error.reason : undefined
    yield* expect(reason, { _tag: "TooLarge", size: limit + 1, limit }, "it says how large, and the limit")
    yield* expect(yield* readWhole(backend, "/kept"), "kept", "the old content is there")
    yield* fails(backend.read("/new"), "read of what was refused", "NotFound")
    yield* expect((yield* readBytes(backend, "/full")).length, limit, "a file of the limit's size is no problem")
  })
]
