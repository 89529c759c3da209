import { Effect, Layer } from "effect"
import { ChatModel } from "effect-deepagents"
import type { ChatModelConformance } from "effect-deepagents/testing/conformance"
import type { LlamaContext, LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp"
import type { Codec } from "../../../src/models/local/internal/codecs/Codec.ts"
import { makeCodecTurns } from "../../../src/models/local/internal/codecTurn.ts"
import type { Engine } from "../../../src/models/local/internal/engine.ts"
import * as Pool from "../../../src/models/local/internal/pool.ts"
import { open } from "../../../src/models/local/internal/session.ts"
import { answered, writeCalls } from "../internal/llama/codecs/decode.ts"

type Scenario = ChatModelConformance.Scenario

/** Each UTF-16 unit is a token: a character may be cut in two. */
const tokensOf = (text: string): Array<Token> => text.split("").map((char) => char.charCodeAt(0) as Token)

/** Half of a pair is no character yet. */
const textOf = (tokens: ReadonlyArray<Token>): string =>
  tokens
    .map((token) => String.fromCharCode(token))
    .join("")
    .replaceAll(/\p{Surrogate}/gu, "\uFFFD")

const partial: { readonly [Name in Codec["name"]]: (name: string) => string } = {
  lfm2: (name) => `<|tool_call_start|>[${name}(text="half a no`,
  hermes: (name) => `<tool_call>{"name": "${name}", "arguments": {"text": "half a no`,
  "qwen-xml": (name) => `<tool_call><function=${name}><parameter=text>half a no`,
  gemma: (name) => `<|tool_call>call:${name}{text:<|"|>half a no`
}

const say = (codec: Codec, scenario: Scenario): string => {
  if (scenario._tag === "Text") return scenario.pieces.join("")
  if (scenario._tag === "LengthInArguments") return partial[codec.name](scenario.name)
  if (scenario._tag !== "ToolCalls") return ""
  return writeCalls(
    codec,
    scenario.calls.map((call) => answered(call.name, call.arguments))
  )
}

/** A model without llama.cpp, which says its script in the notation of a family. */
export const layer = (codec: Codec, scenarios: ReadonlyArray<Scenario>): Layer.Layer<ChatModel.ChatModel> => {
  let turn = 0
  const state = { known: 0, input: 0, output: 0 }
  const sequence = {
    context: { batchSize: 512 },
    needsCheckpoints: false,
    get nextTokenIndex() {
      return state.known
    },
    compareContextTokens: () => ({ firstDifferentIndex: 0 }),
    adaptStateToTokens: async () => {
      state.known = 0
    },
    evaluateWithoutGeneratingNewTokens: async (tokens: ReadonlyArray<Token>) => {
      state.known += tokens.length
      state.input += tokens.length
    },
    evaluate: async function* () {
      const scenario = scenarios[turn++]
      for (const token of scenario === undefined ? [] : tokensOf(say(codec, scenario))) {
        state.output++
        yield token
      }
      if (scenario?._tag === "Hang") {
        yield* tokensOf(scenario.text)
        await new Promise(() => {})
      }
    },
    tokenMeter: {
      getState: () => ({ usedInputTokens: state.input, usedOutputTokens: state.output }),
      diff: (before: { readonly usedInputTokens: number; readonly usedOutputTokens: number }) => ({
        usedInputTokens: state.input - before.usedInputTokens,
        usedOutputTokens: state.output - before.usedOutputTokens
      })
    }
  }
  const model = {
    tokens: { bos: null, shouldPrependBosToken: false },
    tokenize: tokensOf,
    detokenize: textOf
  }
  // The few members of each that a turn uses.
  const engine = { model: model as unknown as LlamaModel } as unknown as Engine
  const context = {
    contextSize: 1_000_000,
    totalSequences: 2,
    getSequence: () => sequence as unknown as LlamaContextSequence
  } as unknown as LlamaContext
  const first = scenarios[0]
  const maxTokens = first?._tag === "LengthInArguments" ? say(codec, first).length : 900_000
  const origin = { provider: "llama", model: "scripted" }
  return Layer.succeed(ChatModel.ChatModel, {
    modelId: origin.model,
    provider: origin.provider,
    supportsVision: false,
    contextWindowTokens: context.contextSize,
    makeSession: Effect.suspend(() =>
      open({
        origin,
        engine,
        context,
        pool: Pool.make(context),
        settings: { maxTokens },
        callWatch: () => undefined,
        restore: undefined,
        makePrepare: () => makeCodecTurns(engine, codec, "")
      })
    )
  })
}
