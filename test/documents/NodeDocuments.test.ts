/** PDFs in threads: the same texts, and documents that would hold the program up, or fill its memory, are given up. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Documents } from "effect-deepagents/documents"
import * as NodeDocuments from "effect-deepagents/documents/NodeDocuments"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Opener } from "../../src/documents/internal/pdf/pdf.ts"
import { openHere } from "../../src/documents/internal/pdf/pdfHere.ts"
import * as make from "./make.ts"

const secret = new Uint8Array(readFileSync(new URL("files/password.pdf", import.meta.url)))

const inThread = Effect.provide(NodeDocuments.layer())

const describeFailure = (
  bytes: Uint8Array,
  more: { readonly password?: Redacted.Redacted; readonly from?: number } = {}
) =>
  Documents.text({ bytes, name: "a.pdf", ...more }).pipe(
    Effect.map(({ text }) => text),
    Effect.catch(({ message, reason }) => Effect.succeed(`${reason}: ${message}`))
  )

const heavy = new TextEncoder().encode(`BT /F 12 Tf (${"a".repeat(8_000_000)}) Tj ET`)

describe("NodeDocuments", () => {
  it.live("says the same as the thread of the program", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(Array.from({ length: 103 }, (_, page) => (page === 1 ? "" : `Page ${page + 1}`)))
      for (const [document, more] of [
        [bytes, {}],
        [bytes, { from: 102 }],
        [bytes, { from: 500 }],
        [make.packed(new TextEncoder().encode("BT /F 12 Tf (Hello) Tj ET")), {}],
        [secret, {}],
        [secret, { password: Redacted.make("wrong") }],
        [secret, { password: Redacted.make("secret") }],
        [new TextEncoder().encode("%PDF-1.7 nonsense"), {}],
        [bytes.subarray(0, 2_000), {}]
      ] as const) {
        const here = yield* Effect.provideService(describeFailure(document, more), Opener, openHere)
        assert.strictEqual(yield* inThread(describeFailure(document, more)), here)
      }
    })
  )

  it.live("the program goes on while a page takes its time, and the page is given up", () =>
    Effect.gen(function* () {
      let turns = 0
      const other = yield* Effect.forkChild(
        Effect.repeat(
          Effect.sync(() => turns++),
          Schedule.spaced("1 millis")
        )
      )
      const hasty = Effect.provide(NodeDocuments.layer({ timeout: "200 millis" }))
      assert.match(yield* hasty(describeFailure(make.packed(heavy))), /^TimedOut: .* took longer than 200ms/)
      yield* Fiber.interrupt(other)
      assert.isAbove(turns, 10)
    })
  )

  it.live("a PDF is read in a thread without a layer", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(["one", "two"])
      // A port is listened to while a thread is asked.
      const hasPort = Effect.sync(() => process.getActiveResourcesInfo().includes("MessagePort"))
      assert.isFalse(yield* hasPort)
      const watching = yield* Effect.forkChild(
        Effect.repeat(hasPort, { until: (found) => found, schedule: Schedule.spaced("1 millis") })
      )
      assert.include(yield* describeFailure(bytes), "two")
      assert.isTrue(yield* Effect.timeout(Fiber.join(watching), "1 second"))
      assert.isFalse(yield* hasPort)
    })
  )

  for (const [name, document] of [
    ["20,000 ranges of characters in 4 kB", make.manyRanges],
    ["5,000,000 operators in 10 kB", () => make.packed(Buffer.alloc(10_000_000, "q "))]
  ] as const) {
    it.live(`the program goes on while a thread reads ${name}`, () =>
      Effect.gen(function* () {
        const bytes = document()
        assert.isBelow(bytes.length, 12_000)
        let turns = 0
        const other = yield* Effect.forkChild(
          Effect.repeat(
            Effect.sync(() => turns++),
            Schedule.spaced("5 millis")
          )
        )
        const hasty = Effect.provide(NodeDocuments.layer({ timeout: "1 second" }))
        // One page, so the thread has its second once for the beginning and once for the page.
        assert.match(yield* hasty(describeFailure(bytes)), /^TimedOut|^TooLarge|^--- page 1 ---/)
        yield* Fiber.interrupt(other)
        assert.isAbove(turns, 20)
      })
    )
  }

  it.live("a page that unpacks to more than can be meant is refused", () =>
    Effect.gen(function* () {
      const bomb = make.packed(new Uint8Array(200_000_000).fill(0x20))
      assert.isBelow(bomb.length, 250_000)
      assert.match(yield* inThread(describeFailure(bomb)), /^TooLarge: .*64 MB of memory/)
    })
  )

  it.live("a thread ends with whoever reads", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(["one", "two", "three"])
      const threads = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length
      const before = threads()
      const first = yield* inThread(Stream.runCollect(Stream.take(Documents.stream({ bytes }), 1)))
      assert.strictEqual(first[0]?.text, "one\n")
      assert.strictEqual(threads(), before)
    })
  )
})
