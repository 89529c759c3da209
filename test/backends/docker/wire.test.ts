/** The wire to a container engine: frames of output, cut anywhere, and archives. */
import { execFileSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { makeDecoder, makeSplitter } from "../../../src/backends/internal/docker/frames.ts"
import { archiveOf } from "../../../src/backends/internal/docker/tar.ts"
import { scaled } from "../../scale.ts"

const frame = fc.record({
  channel: fc.constantFrom("stdout" as const, "stderr" as const),
  text: fc.string({ unit: "grapheme", maxLength: 40 })
})

const encode = (channel: "stdout" | "stderr", bytes: Uint8Array): Uint8Array => {
  const header = Buffer.from([channel === "stderr" ? 2 : 1, 0, 0, 0, 0, 0, 0, 0])
  header.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

const join = (pieces: ReadonlyArray<{ readonly channel: string; readonly text: string }>, wanted: string) =>
  pieces.flatMap(({ channel, text }) => (channel === wanted ? [text] : [])).join("")

describe("frames", () => {
  it("give the same text, wherever the stream and the characters are cut", () => {
    fc.assert(
      fc.property(fc.array(frame), fc.array(fc.nat(200)), fc.nat(6), (frames, cuts, size) => {
        // A character may be in two frames.
        const parts = frames.flatMap(({ channel, text }) => {
          const bytes = Buffer.from(text)
          const at = Math.min(size, bytes.length)
          return [encode(channel, bytes.subarray(0, at)), encode(channel, bytes.subarray(at))]
        })
        const wire = Buffer.concat(parts)
        const splitter = makeSplitter()
        const decode = makeDecoder()
        const seen: Array<{ readonly channel: string; readonly text: string }> = []
        const places = [...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted((a, b) => a - b)
        let from = 0
        for (const to of places) {
          seen.push(...splitter.push(wire.subarray(from, to)).map(decode))
          from = to
        }
        for (const channel of ["stdout", "stderr"]) assert.strictEqual(join(seen, channel), join(frames, channel))
        assert.isTrue(splitter.isWhole())
      }),
      { numRuns: scaled(800) }
    )
  })

  it("an end within a frame is seen", () => {
    const wire = encode("stdout", Buffer.from("hello"))
    for (let length = 1; length < wire.length; length++) {
      const splitter = makeSplitter()
      splitter.push(wire.subarray(0, length))
      assert.isFalse(splitter.isWhole(), `${length}`)
    }
  })
})

describe("an archive", () => {
  it("is read by tar, with any content and length", () => {
    for (const length of [0, 1, 511, 512, 513, 70_000]) {
      const content = Uint8Array.from({ length }, (_, index) => (index * 31) % 256)
      const input = archiveOf(".ed-1.0", content, { uid: 1234, gid: 5 })
      assert.strictEqual(Buffer.compare(execFileSync("tar", ["-xO"], { input }), content), 0, `${length}`)
      const [listed] = String(execFileSync("tar", ["--numeric-owner", "-tv"], { input })).split("\n")
      assert.match(listed ?? "", new RegExp(String.raw`^-rw------- 1234/5 +${length} .* \.ed-1\.0$`))
    }
  })
})
