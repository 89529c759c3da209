import { assert, describe, it } from "@effect/vitest"
import { ChatModelConformance } from "effect-deepagents/testing/conformance"
import fc from "fast-check"
import { makeNormalizer } from "../../../src/models/internal/turn/normalize.ts"
import type { Codec } from "../../../src/models/local/internal/codecs/Codec.ts"
import { gemma } from "../../../src/models/local/internal/codecs/gemma.ts"
import { hermes } from "../../../src/models/local/internal/codecs/hermes.ts"
import { lfm2 } from "../../../src/models/local/internal/codecs/lfm2.ts"
import { qwenXml } from "../../../src/models/local/internal/codecs/qwenXml.ts"
import { toHistory } from "../../../src/models/local/internal/history.ts"
import { dialectOf } from "../../../src/models/local/internal/session.ts"
import { history } from "../internal/histories.ts"
import { ask } from "../internal/llama/codecs/decode.ts"
import { layer } from "./scripted.ts"

const codecs: ReadonlyArray<Codec> = [lfm2, hermes, qwenXml, gemma]

/** Failures of servers only, which a model in this process can't have. */
const ofServers = /^\d{3}|connection that is cut/

describe("ChatModelConformance", () => {
  for (const codec of codecs) {
    describe(codec.name, () => {
      for (const check of ChatModelConformance.suite({ layer: (scenarios) => layer(codec, scenarios) })) {
        if (!ofServers.test(check.name)) it.live(check.name, () => check.run, 60_000)
      }
    })
  }
})

const normalize = () => makeNormalizer(dialectOf({ provider: "llama", model: "scripted" }))

const count = (text: string, part: string) => text.split(part).length - 1

describe("any history", () => {
  it("becomes a prompt in which every turn is closed but the last, which is the model's", () => {
    for (const codec of codecs) {
      const [open, close] = codec.name === "gemma" ? ["<|turn>", "<turn|>"] : ["<|im_start|>", "<|im_end|>"]
      fc.assert(
        fc.property(history(), (messages) => {
          const { turns } = normalize()(messages)
          const { pieces } = codec.prompt(ask(turns, { systemPrompt: "Be brief." }))
          const control = pieces.flatMap((piece) => (piece.special ? [piece.text] : [])).join("")
          assert.strictEqual(count(control, open), count(control, close) + 1)
          assert.isAbove(control.lastIndexOf(open), control.lastIndexOf(close))
        })
      )
    }
  })

  it("becomes items for a chat wrapper that begin with the user and end with the model, which has every result", () => {
    fc.assert(
      fc.property(history(), (messages) => {
        const { turns } = normalize()(messages)
        const items = toHistory("", turns, [], true)
        assert.strictEqual(items[0]?.type, "user")
        assert.strictEqual(items.at(-1)?.type, "model")
        const results = items.flatMap((item) =>
          item.type === "model"
            ? item.response.flatMap((part) => (typeof part !== "string" && part.type === "functionCall" ? [part] : []))
            : []
        )
        const calls = turns.flatMap((turn) => (turn.role === "ai" ? turn.calls : []))
        assert.lengthOf(results, calls.filter((call) => call.raw === undefined).length)
        for (const { result } of results) assert.isString(result)
      })
    )
  })
})
