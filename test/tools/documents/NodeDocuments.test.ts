/** PDFs in threads: the same texts, and documents that would hold the program up, or fill its memory, are given up. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Documents } from "effect-deepagents/tools"
import * as NodeDocuments from "effect-deepagents/tools/NodeDocuments"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as make from "./make.ts"

const secret = new Uint8Array(readFileSync(new URL("files/password.pdf", import.meta.url)))

const inThread = Effect.provide(NodeDocuments.layer())

const told = (bytes: Uint8Array, more: { readonly password?: Redacted.Redacted; readonly from?: number } = {}) =>
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
        assert.strictEqual(yield* inThread(told(document, more)), yield* told(document, more))
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
      const hasty = Effect.provide(NodeDocuments.layer({ timeout: "400 millis" }))
      assert.match(yield* hasty(told(make.packed(heavy))), /^TimedOut: .* took longer than 400ms/)
      yield* Fiber.interrupt(other)
      assert.isAbove(turns, 10)
    })
  )

  it.live("a page that unpacks to more than can be meant is refused", () =>
    Effect.gen(function* () {
      const bomb = make.packed(new Uint8Array(200_000_000).fill(0x20))
      assert.isBelow(bomb.length, 250_000)
      assert.match(yield* inThread(told(bomb)), /^TooLarge: .*64 MB of memory/)
    })
  )

  it.live("a thread ends with whoever reads", () =>
    Effect.gen(function* () {
      const bytes = yield* make.pdf(["one", "two", "three"])
      const threads = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length
      const before = threads()
      const first = yield* inThread(Stream.runCollect(Stream.take(Documents.read({ bytes }), 1)))
      assert.strictEqual(first[0]?.text, "one\n")
      assert.strictEqual(threads(), before)
    })
  )
})
