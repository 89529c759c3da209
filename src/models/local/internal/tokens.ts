/** Text to tokens and back, as they come. */
import type { LlamaModel, Token } from "node-llama-cpp"
import type { Piece } from "./codecs/Codec.ts"

/** Neighbours of one kind are one text to the tokenizer. */
const mergePieces = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
  const out: Array<Piece> = []
  for (const piece of pieces) {
    const last = out.at(-1)
    if (piece.text === "") continue
    if (last?.special === piece.special) out[out.length - 1] = { ...piece, text: last.text + piece.text }
    else out.push(piece)
  }
  return out
}

/**
 * Makes a tokenizer of prompts for one session. It remembers the pieces of the last prompt: most of a conversation is
 * the same in the next round.
 */
export const makeTokenizer = (model: LlamaModel): ((pieces: ReadonlyArray<Piece>) => ReadonlyArray<Token>) => {
  let cache = new Map<string, ReadonlyArray<Token>>()
  const { bos, shouldPrependBosToken } = model.tokens
  return (pieces) => {
    const next = new Map<string, ReadonlyArray<Token>>()
    const tokens: Array<Token> = shouldPrependBosToken && bos !== null ? [bos] : []
    for (const { special, text } of mergePieces(pieces)) {
      const key = `${special ? "s" : "p"}${text}`
      const own = cache.get(key) ?? next.get(key) ?? model.tokenize(text, special, "trimLeadingSpace")
      next.set(key, own)
      for (const token of own) tokens.push(token)
    }
    cache = next
    return tokens
  }
}

/** Tokens that a character may be spread over, at most. */
const spread = 4

/** Makes a reader of generated tokens: a character that is not whole yet is held back. */
export const makeReader = (model: LlamaModel, before: ReadonlyArray<Token>) => {
  let last = before.slice(-8)
  let pending: Array<Token> = []
  const readPending = (): string => {
    const text = model.detokenize(pending, true, last)
    last = [...last, ...pending].slice(-8)
    pending = []
    return text
  }
  return {
    push: (token: Token): string => {
      pending.push(token)
      const isPart = pending.length < spread && model.detokenize(pending, true, last).endsWith("\uFFFD")
      return isPart ? "" : readPending()
    },
    end: (): string => (pending.length === 0 ? "" : readPending())
  }
}
