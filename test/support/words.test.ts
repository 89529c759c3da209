/** Long texts are cut between words: their pieces have the words of the whole. */
import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import { wordPieces, words } from "../../src/support/text/words.ts"
import { scaled } from "../scale.ts"

const parts = ["word ", "a-", "漢字", "カﾞ", "e\u0301 ", "ΣΑΣ ", "😀", "x", "\n", "ﷺ", "१२"]

describe("the pieces of a long text", () => {
  it("have the words of the whole, in their order, and lose nothing", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(FastCheck.tuple(FastCheck.constantFrom(...parts), FastCheck.integer({ min: 1, max: 30_000 })), {
          minLength: 4,
          maxLength: 12
        }),
        (runs) => {
          const text = runs.map(([part, times]) => part.repeat(times)).join("")
          const pieces = [...wordPieces(text)]
          expect(pieces.join("") === text).toBe(true)
          // A word of tens of thousands of characters counts as several, wherever it is cut.
          if (runs.some(([part, times]) => part === "x" && times > 20_000)) return
          const found = pieces.flatMap((piece) => [...words(piece)])
          expect(found.length).toBe(words(text).length)
          expect(found.join(" ") === words(text).join(" ")).toBe(true)
        }
      ),
      { numRuns: scaled(20) }
    )
  }, 30_000)
})
