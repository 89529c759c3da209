/**
 * What is kept of long output, and how bytes become text.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Output from "../../../../src/backends/internal/local/output.ts"

const text = fc.array(fc.constantFrom("a", "bc", "\n", "ä", "😀", "x".repeat(70_000)), { maxLength: 12 })

describe("the kept output", () => {
  it("is all of it, or its beginning and its end with the size of the gap, from any pieces", () => {
    fc.assert(
      fc.property(text, fc.nat(40), (pieces, limit) => {
        const all = pieces.join("")
        const keeper = Output.keeper(limit)
        for (const piece of pieces) keeper.add(piece)
        const { output, truncated } = keeper.kept()
        assert.strictEqual(truncated, all.length > limit)
        if (!truncated) {
          assert.strictEqual(output, all)
          return
        }
        const [, head = "", left = "", tail = ""] =
          /^([^…]*)\n… (\d+) characters left out …\n([^…]*)$/u.exec(output) ?? []
        assert.isTrue(all.startsWith(head) && all.endsWith(tail) && output.isWellFormed())
        assert.strictEqual(head.length + Number(left) + tail.length, all.length)
        assert.isTrue(head.length + tail.length <= limit && head.length + tail.length >= limit - 2)
      })
    )
  })

  it("of the end only, is never more than was asked for", () => {
    fc.assert(
      fc.property(text, fc.nat(40), (pieces, length) => {
        const keeper = Output.keeper(80)
        for (const piece of pieces) keeper.add(piece)
        const end = keeper.end(length)
        assert.isTrue(pieces.join("").endsWith(end) && end.length <= length && end.isWellFormed())
      })
    )
  })
})

describe("text", () => {
  it("does not depend on where its bytes are cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.array(fc.nat(40), { maxLength: 5 }), (bytes, cuts) => {
        const decoder = Output.decoder()
        const places = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
        const pieces = places.slice(1).flatMap((place, index) =>
          decoder.add([
            { channel: "stdout", bytes: bytes.slice(places[index], place) },
            { channel: "stderr", bytes: Uint8Array.from([0xc3]) }
          ])
        )
        const of = (channel: string) =>
          [...pieces, ...last].filter((piece) => piece.channel === channel).map((piece) => piece.text)
        const last = decoder.end()
        assert.strictEqual(of("stdout").join(""), new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))
        assert.isTrue([...pieces, ...last].every((piece) => piece.text !== ""))
      })
    )
  })
})
