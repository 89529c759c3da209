/** Recognises "the conversation does not fit" in what providers and servers say. */
import type { Reason } from "../../../core/ModelError.ts"
import { defined } from "../../../support/json/defined.ts"

type Overflow = Extract<Reason, { readonly _tag: "ContextOverflow" }>

const codes = /context_length_exceeded|context_window_exceeded|string_above_max_length|exceed_context_size/

/** One line a family; the comment says who writes so. */
const phrases: ReadonlyArray<RegExp> = [
  // OpenAI, vLLM, SGLang, LiteLLM, OpenRouter
  /maximum context length|exceeds? (?:the )?(?:model'?s )?context (?:window|length)/i,
  // Anthropic, z.ai, Ollama, Bedrock
  /(?:prompt|input) (?:is )?too long/i,
  // Anthropic behind proxies
  /input length and `?max_tokens`? exceed context limit/i,
  // llama-server
  /exceeds? the available context size|context size has been exceeded/i,
  // LM Studio
  /greater than the context length|context (?:length|window) (?:overflow|exceeded)/i,
  // Google
  /input token count.{0,100}exceeds the maximum/i,
  // xAI
  /maximum prompt length is \d+/i,
  // Groq
  /reduce the length of the messages/i,
  // Together, Mistral, Kimi, MiniMax, DashScope
  /longer than the model'?s context length|too large for model with \d+|exceeded model token limit/i,
  /context window exceeds limit|range of input length should be/i,
  // TGI
  /`?inputs`? tokens? \+ `?max_new_tokens`? must be|must have less than \d+ tokens/i
]

/** A limit on tokens in a minute reads much the same, and passes. */
const isRate = /rate limit|tokens per min|\bTPM\b|too many requests/i

const count = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text.replaceAll(/[,_]/g, ""))

const number = String.raw`(\d[\d,_]{0,20})`

const limits: ReadonlyArray<RegExp> = [
  new RegExp(
    `(?:maximum context length|context (?:length|size|window)|maximum prompt length)(?: is| of)?:? \\(?${number}`,
    "i"
  ),
  new RegExp(`> ${number} maximum`, "i"),
  new RegExp(`available context size \\(${number}`, "i"),
  new RegExp(`maximum number of tokens allowed \\(${number}`, "i"),
  new RegExp(`with ${number} maximum context`, "i"),
  new RegExp(`token limit: ${number}`, "i")
]

const uses: ReadonlyArray<RegExp> = [
  new RegExp(`resulted in ${number}`, "i"),
  new RegExp(`requested(?: about)?:? ${number}`, "i"),
  new RegExp(`too long: ${number}`, "i"),
  new RegExp(`request contains ${number}`, "i"),
  new RegExp(`(?:request|prompt|input)(?: length| has| contains| token count)? \\(?${number} ?tokens?`, "i"),
  new RegExp(`token count \\(${number}`, "i")
]

const find = (patterns: ReadonlyArray<RegExp>, message: string): number | undefined => {
  for (const pattern of patterns) {
    const tokens = count(pattern.exec(message)?.[1])
    if (tokens !== undefined && Number.isFinite(tokens)) return tokens
  }
  return undefined
}

/** Recognises a context overflow, and reads its limit and used tokens from the message if present. */
export const overflowOf = (named: string, message: string, status: number | undefined): Overflow | undefined => {
  const isOverflow = codes.test(named) || phrases.some((phrase) => phrase.test(message))
  if (!isOverflow || status === 429 || isRate.test(message)) return undefined
  return defined({ _tag: "ContextOverflow", limit: find(limits, message), used: find(uses, message) })
}
