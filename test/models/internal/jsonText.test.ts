import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { makeJsonWriter } from "../../../src/models/internal/wire/jsonText.ts"

/** Rounds of a conversation: how much of its end is dropped, and the sizes of the new messages. */
const rounds = fc.array(
  fc.tuple(fc.integer({ min: 0, max: 5 }), fc.array(fc.integer({ min: 0, max: 9_000 }), { maxLength: 12 })),
  { maxLength: 20 }
)

describe("the JSON of requests", () => {
  it("equals the JSON of the whole body, for any kept part of the one before", () => {
    fc.assert(
      fc.property(rounds, (all) => {
        const write = makeJsonWriter()
        let items: ReadonlyArray<unknown> = []
        for (const [dropped, added] of all) {
          items = [
            ...items.slice(0, Math.max(0, items.length - dropped)),
            ...added.map((size, index) => (size % 7 === 0 ? undefined : { index, text: 'é"x'.repeat(size / 3) }))
          ]
          const body = { model: "m", input: items, tools: [], none: undefined, stream: true, [`"${all.length}`]: null }
          expect(write(body)).toBe(JSON.stringify(body))
        }
      }),
      { numRuns: 40 }
    )
    expect(makeJsonWriter()({})).toBe("{}")
  })

  it("writes only new items of a long list", () => {
    let written = 0
    const item = (text: string) => ({
      toJSON: () => {
        written++
        return text
      }
    })
    const write = makeJsonWriter()
    const items = Array.from({ length: 2_000 }, (_, index) => item(`${index}`.padEnd(400, ".")))
    write({ input: items })
    expect(written).toBe(2_000)
    const more = [...items, item("new")]
    expect(write({ input: more })).toBe(JSON.stringify({ input: more }))
    expect(written).toBe(2_000 + 1 + 2_001)
    // A change near the end writes a chunk anew, no more.
    written = 0
    write({ input: more.with(-3, item("other")) })
    expect(written).toBeLessThan(200)
  })
})
