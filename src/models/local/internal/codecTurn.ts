/** Turns by a codec of this library: it writes the prompt, the model is run token by token, it reads what comes. */
import type { LlamaContextSequence, LlamaGrammar, Token } from "node-llama-cpp"
import { budgetOf } from "../../internal/turn/thinking.ts"
import type { Codec, Decoder, Delta } from "./codecs/Codec.ts"
import { makeVoice } from "./codecs/scanner.ts"
import type { Engine } from "./engine.ts"
import { makeReader, makeTokenizer } from "./tokens.ts"
import { type LocalRequest, type PreparedTurn, repeatWindow, samplingOf } from "./turn.ts"

/**
 * Evaluates all but the last token of a prompt, and reuses the tokens that the sequence remembers. It works in pieces,
 * so that an interruption need not wait for a long prompt.
 */
const readPrompt = async (
  sequence: LlamaContextSequence,
  tokens: ReadonlyArray<Token>,
  signal: AbortSignal
): Promise<void> => {
  const before = tokens.slice(0, -1)
  await sequence.adaptStateToTokens(before, false)
  const { batchSize } = sequence.context
  while (sequence.nextTokenIndex < before.length && !signal.aborted) {
    const from = sequence.nextTokenIndex
    await sequence.evaluateWithoutGeneratingNewTokens(before.slice(from, from + batchSize))
  }
  // Models that can't go back to any place of a prompt can go back to this one: the next prompt goes on from here.
  if (sequence.needsCheckpoints && !signal.aborted) await sequence.takeCheckpoint()
}

/** The text of a turn under a grammar, which ends in line breaks that are no part of it. */
const textDecoder = (emit: (delta: Delta) => void): Decoder => {
  const voice = makeVoice((text) => emit({ _tag: "Text", text }), true)
  return { push: voice.say, end: () => undefined }
}

const grammarEnd = "\n".repeat(4)

/** Makes the function that prepares the turns of one session. */
export const makeCodecTurns = (engine: Engine, codec: Codec, template: string) => {
  const { library, model } = engine
  const tokenize = makeTokenizer(model)
  // The model has no such marker if its text is more than one token.
  const stops = new Set(
    codec.stops.flatMap((stop) => {
      const tokens = model.tokenize(stop, true)
      return tokens.length === 1 ? tokens : []
    })
  )

  return (conversation: LocalRequest, grammar: LlamaGrammar | undefined): PreparedTurn => {
    const { settings, tools } = conversation
    const level = grammar === undefined ? settings.thinking : "off"
    const thinking = level === undefined ? undefined : budgetOf(level) > 0
    const prompt = codec.prompt({ ...conversation, thinking, template })
    const tokens = tokenize(prompt.pieces)
    return {
      tokens,
      slack: 0,
      generate: async (sequence, limit, signal, emit) => {
        let last: Delta["_tag"] | undefined
        const say = (delta: Delta): void => {
          last = delta._tag
          emit(delta)
        }
        const decoder =
          grammar === undefined ? codec.decoder({ tools, inThought: prompt.inThought }, say) : textDecoder(say)
        const reader = makeReader(model, tokens)
        await readPrompt(sequence, tokens, signal)
        const generated: Array<Token> = []
        let reasoningTokens = 0
        let tail = ""
        if (signal.aborted) return { reason: "stop", reasoningTokens }
        decoder.push(prompt.said)
        const stream = sequence.evaluate(tokens.slice(-1), {
          ...samplingOf(settings),
          ...(settings.repeatPenalty === undefined
            ? {}
            : {
                repeatPenalty: { punishTokens: () => generated.slice(-repeatWindow), penalty: settings.repeatPenalty }
              }),
          ...(grammar === undefined
            ? {}
            : { grammarEvaluationState: new library.LlamaGrammarEvaluationState({ model, grammar }) })
        })
        for await (const token of stream) {
          if (signal.aborted || stops.has(token)) break
          generated.push(token)
          const text = reader.push(token)
          decoder.push(text)
          if (last === "Reasoning") reasoningTokens++
          tail = (tail + text).slice(-grammarEnd.length)
          if (grammar !== undefined && tail === grammarEnd) break
          if (generated.length >= limit) {
            decoder.push(reader.end())
            decoder.end()
            return { reason: "length", reasoningTokens }
          }
        }
        decoder.push(reader.end())
        decoder.end()
        return { reason: "stop", reasoningTokens }
      }
    }
  }
}
