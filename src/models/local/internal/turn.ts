/** The types of one turn: its request, the means to generate it, and its result. */
import type { LlamaContextSequence, Token } from "node-llama-cpp"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import type { SimpleChoice } from "../../internal/turn/choice.ts"
import type { Turn } from "../../internal/turn/normalize.ts"
import type { Delta } from "./codecs/Codec.ts"
import type { Settings } from "./settings.ts"

/** A request in terms that both ways of speaking to a model start from. */
export interface LocalRequest {
  readonly systemPrompt: string
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice: SimpleChoice
  readonly outputSchema: JsonObject | undefined
  readonly settings: Settings
}

/** The end of a turn, and the number of its tokens that were thoughts. */
export interface Finish {
  readonly reason: "stop" | "length"
  readonly reasoningTokens: number
}

/**
 * A turn that can be generated. `tokens` is its whole prompt, `slack` how many more tokens than `limit` it may put into
 * the context. `generate` looks at the signal before each token, and settles when nothing is computed any more.
 */
export interface PreparedTurn {
  readonly tokens: ReadonlyArray<Token>
  readonly slack: number
  readonly generate: (
    sequence: LlamaContextSequence,
    limit: number,
    signal: AbortSignal,
    emit: (delta: Delta) => void
  ) => Promise<Finish>
}

/** The last tokens in which a repetition is looked for. */
export const repeatWindow = 64

/** The part of the settings that node-llama-cpp knows by the same names. */
export const samplingOf = ({ minP, seed, temperature = 0, topK, topP }: Settings) =>
  defined({ temperature, topK, topP, minP, seed })
