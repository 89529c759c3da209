import { assert, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Delta } from "../../../../src/models/local/internal/codecs/Codec.ts"
import { choose } from "../../../../src/models/local/internal/codecs/detect.ts"
import { makeCodecTurns } from "../../../../src/models/local/internal/codecTurn.ts"
import { load } from "../../../../src/models/local/internal/engine.ts"
import type { LocalRequest } from "../../../../src/models/local/internal/turn.ts"
import { makeWrapperTurns } from "../../../../src/models/local/internal/wrapperTurn.ts"
import { definition, endless } from "../../llama/models.ts"
import { human } from "./codecs/decode.ts"

vi.setConfig({ testTimeout: 60_000 })

const asked: LocalRequest = {
  systemPrompt: "You are brief.",
  turns: [human("Go on.")],
  tools: [],
  toolChoice: "auto",
  outputSchema: undefined,
  settings: { temperature: 0.7, seed: 1 }
}

/** Both ways of speaking to one loaded model, and a sequence of 1,536 tokens. */
const opened = Effect.gen(function* () {
  const engine = yield* load({ provider: "llama", model: "endless" }, { model: endless, gpu: false, threads: 1 })
  const context = yield* Effect.promise(() => engine.model.createContext({ contextSize: 1536, threads: 1 }))
  const hermes = choose("hermes", "")
  assert(hermes !== undefined)
  const wrapper = engine.library.resolveChatWrapper(engine.model, { warningLogs: false })
  return {
    sequence: context.getSequence(),
    ways: { hermes: makeCodecTurns(engine, hermes, ""), wrapper: makeWrapperTurns(engine, wrapper) }
  }
})

const failed = <A>(promise: Promise<A>): Promise<boolean> =>
  promise.then(
    () => false,
    () => true
  )

describe("a turn", () => {
  it.effect("is over one token after its signal, and computes nothing for a signal that was there before", () =>
    Effect.gen(function* () {
      const { sequence, ways } = yield* opened
      for (const way of [ways.hermes, ways.wrapper]) {
        const prepared = way(asked, undefined)
        const controller = new AbortController()
        const said: Array<Delta> = []
        const before = sequence.tokenMeter.getState()
        yield* Effect.promise(() =>
          failed(
            prepared.generate(sequence, 400, controller.signal, (delta) => {
              said.push(delta)
              if (said.length === 5) controller.abort("enough")
            })
          )
        )
        assert.isAtMost(said.length, 6)
        assert.isAtMost(sequence.tokenMeter.diff(before).usedOutputTokens, 20)

        const between = sequence.tokenMeter.getState()
        yield* Effect.promise(() => sequence.clearHistory())
        yield* Effect.promise(() => failed(prepared.generate(sequence, 400, AbortSignal.abort("early"), () => {})))
        assert.deepStrictEqual(sequence.tokenMeter.diff(between), { usedInputTokens: 0, usedOutputTokens: 0 })
      }
    }).pipe(Effect.scoped)
  )

  it.effect("that fills the context is cut, and keeps the conversation's beginning", () =>
    Effect.gen(function* () {
      const { sequence, ways } = yield* opened
      const prepared = ways.wrapper(asked, undefined)
      const finish = yield* Effect.promise(() =>
        prepared.generate(sequence, 5000, new AbortController().signal, () => {})
      )
      assert.strictEqual(finish.reason, "length")
      assert.deepStrictEqual(sequence.contextTokens.slice(0, prepared.tokens.length), prepared.tokens)
    }).pipe(Effect.scoped)
  )

  it.effect("that fills the context inside of a call keeps the part of the call", () =>
    Effect.gen(function* () {
      const { sequence, ways } = yield* opened
      const tools = [definition("f", { type: "object", properties: { a: { type: "string" } }, required: ["a"] })]
      const prepared = ways.wrapper(
        { ...asked, tools, toolChoice: "required", settings: { temperature: 0 } },
        undefined
      )
      const said: Array<Delta> = []
      const finish = yield* Effect.promise(() =>
        prepared.generate(sequence, 5000, new AbortController().signal, (delta) => void said.push(delta))
      )
      assert.strictEqual(finish.reason, "length")
      const last = said.at(-1)
      assert(last?._tag === "Malformed")
      assert.strictEqual(last.name, "f")
      assert.isTrue(last.raw.startsWith('{"a"'))
    }).pipe(Effect.scoped)
  )
})
