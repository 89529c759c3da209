/** Code is split by its definitions, with true offsets and lines; what can't be parsed is split by lines. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, Message } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Chunker, Indexer, MemoryIndex, Rag, RagIndex } from "effect-deepagents/rag"
import * as CodeSplitter from "effect-deepagents/rag/CodeSplitter"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"

const filler = Array.from({ length: 60 }, (_, at) => `    total += ${at} // 👩‍👩‍👧 adds`).join("\n")

const files = {
  "/src/cart.ts": `import { a } from "a"\n\n/** The sum of a cart. */\nexport const sumCart = () => {\n  let total = 0\n${filler}\n  return total\n}\n\nexport class Cart {\n  /** Adds one. */\n  addItem() {\n${filler}\n  }\n  removeItem() {\n${filler}\n  }\n}\n`,
  "/src/pay.py": `class Payment:\n    def refund_money(self):\n        """Gives the money back."""\n        return None\n`,
  "/src/ship.rs": `impl Parcel { fn ship_parcel(&self) -> bool { true } }\n`,
  "/src/odd.kt": `fun oddOne() = 1\n`,
  "/README.md": "# Shop\nA shop with a cart, payments and refunds."
}

const splitCode = (id: string, text: string) =>
  Effect.map(CodeSplitter.load, (code) => Chunker.chunk({ id, text }, { split: code }))

const linesIn = (text: string, start: number, end: number) => {
  const first = text.slice(0, start).split("\n").length
  return [first, first + text.slice(start, end).split("\n").length - 1]
}

describe("load", () => {
  it.effect("splits by definitions, under their names and with their lines", () =>
    Effect.gen(function* () {
      const text = files["/src/cart.ts"]
      const chunks = yield* splitCode("/src/cart.ts", text)
      const under = (name: string) => chunks.filter(({ headings }) => headings.join(" ") === name)
      expect(under("sumCart")[0]?.text).toMatch(/^\/\*\* The sum of a cart|^import/)
      expect(under("Cart addItem")[0]?.text).toContain("/** Adds one. */\n  addItem")
      expect(under("Cart removeItem")[0]?.text).toMatch(/^removeItem/)
      for (const { end, label, start, text: own } of chunks) {
        expect(text.slice(start, end)).toBe(own)
        const [first, last] = label.match(/\d+/g)?.map(Number) ?? []
        const [from = 0, to = 0] = linesIn(text, start, end)
        expect(first !== undefined && first <= from && (last ?? first) >= to).toBe(true)
      }
    })
  )

  it.effect("keeps true offsets for any text, in languages with and without a grammar, and loses only blanks", () =>
    Effect.gen(function* () {
      const code = yield* CodeSplitter.load
      const token = fc.constantFrom(
        "function f() {",
        "}",
        "class A {",
        "\n",
        "  ",
        "(",
        "👩‍👩‍👧",
        "/* c */",
        '"',
        "`",
        "x = 1;",
        "def a(self):\n  pass\n",
        "\uD800",
        "\0"
      )
      const text = fc.array(token, { maxLength: 400 }).map((some) => some.join(""))
      fc.assert(
        fc.property(text, fc.constantFrom("a.ts", "a.py", "a.go", "a.kt", "a"), (text, id) => {
          const spans = code({ id, text })
          let at = 0
          for (const { end, start } of spans) {
            expect(start).toBeGreaterThanOrEqual(at)
            expect(end).toBeGreaterThan(start)
            expect(text.slice(at, start).trim()).toBe("")
            at = end
          }
          expect(text.slice(at).trim()).toBe("")
          for (const one of Chunker.chunk({ id, text }, { split: code }))
            expect(text.slice(one.start, one.end)).toBe(one.text)
        }),
        { numRuns: 60 }
      )
    })
  )

  it.effect(
    "ends soon for hostile texts, and falls back to lines",
    () =>
      Effect.gen(function* () {
        for (const text of [
          `${"(".repeat(300_000)}\n${"}".repeat(100_000)}`,
          "[".repeat(30_000),
          "a\n".repeat(600_000)
        ]) {
          const began = performance.now()
          expect((yield* splitCode("/a.ts", text)).length).toBeGreaterThan(0)
          expect(performance.now() - began).toBeLessThan(15_000)
        }
      }),
    60_000
  )
})

const layers = Layer.merge(MemoryIndex.layer, MemoryBackend.layer({ files }))

describe("code_search", () => {
  it.effect("finds definitions by words of their names, and nothing but code", () =>
    Effect.gen(function* () {
      const space = yield* RagIndex.RagIndex.use((index) => index.space("repository"))
      const code = yield* CodeSplitter.load
      yield* Stream.runDrain(Indexer.folder(space, "/", { code }))
      const agent = Agent.make({ name: "coder", prompt: "", tools: [Rag.codeSearch({ space })] })
      const ask = (query: string) => ({ name: "code_search", arguments: { query, top_k: 2 } })
      const result = yield* Agent.run(agent, "x").pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls([
              ask("sum of a cart"),
              ask("refund the money"),
              ask("ship a parcel"),
              ask("odd one"),
              ask("shop"),
              ask("how do I remove an item")
            ]),
            "done"
          ])
        )
      )
      const texts = result.messages.filter(({ role }) => role === "tool").map(Message.text)
      expect(texts[0]).toMatch(/cart\.ts › sumCart › lines \d+–\d+/)
      expect(texts[1]).toContain("/src/pay.py::0")
      expect(texts[2]).toContain("> impl Parcel")
      expect(texts[3]).toContain("/src/odd.kt::0")
      expect(texts[4]).toBe("Nothing was found. Try other words.")
      expect(texts[5]).toMatch(/^> removeItem\(\)/m)
    }).pipe(Effect.provide(layers))
  )
})
