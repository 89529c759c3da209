/**
 * The codec of a model family: it writes a conversation for the model, and reads the model's text.
 *
 * Pure, without a model: text in, deltas out.
 */
import type { ToolDefinition } from "../../../../core/ChatModel.ts"
import type { JsonObject } from "../../../../core/Json.ts"
import type { SimpleChoice } from "../../../internal/turn/choice.ts"
import type { Turn } from "../../../internal/turn/normalize.ts"

/**
 * A piece of a prompt. Only in a special piece do markers like `<|im_end|>` become the model's control tokens: what a
 * user or a tool wrote never ends a turn.
 */
export interface Piece {
  readonly text: string
  readonly special: boolean
}

/** A piece in which markers are control tokens. */
export const special = (text: string): Piece => ({ text, special: true })

/** A piece in which everything is text. */
export const plain = (text: string): Piece => ({ text, special: false })

/** A request to be answered. `template` is the chat template of the model file, `""` if it has none. */
export interface Ask {
  readonly systemPrompt: string
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice: SimpleChoice
  readonly thinking: boolean | undefined
  readonly template: string
}

/**
 * A prompt. `said` is the beginning of the model's turn that stands in it already; `inThought` if that is a thought.
 */
export interface Prompt {
  readonly pieces: ReadonlyArray<Piece>
  readonly said: string
  readonly inThought: boolean
}

/**
 * The content of the model's text, as it comes. Calls are numbered from 0; each ends in one `Call` or one `Malformed`.
 * The deltas of a call are the JSON text of its arguments, in every notation of a model.
 */
export type Delta =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly text: string }
  | { readonly _tag: "CallStart"; readonly call: number; readonly name: string }
  | { readonly _tag: "CallDelta"; readonly call: number; readonly text: string }
  | { readonly _tag: "Call"; readonly call: number; readonly name: string; readonly arguments: JsonObject }
  | {
      readonly _tag: "Malformed"
      readonly call: number
      readonly name: string | undefined
      readonly raw: string
      readonly problem: string
    }

/** Reads one turn, cut in any way. It takes every text, in time linear in its length, and never throws. */
export interface Decoder {
  readonly push: (text: string) => void
  /** The turn is over: what was open is said to be. */
  readonly end: () => void
}

/** A family's codec. */
export interface Codec {
  readonly name: "lfm2" | "hermes" | "qwen-xml" | "gemma"
  /** Markers at which the model's turn is over even if the model file does not say so. */
  readonly stops: ReadonlyArray<string>
  readonly prompt: (ask: Ask) => Prompt
  readonly decoder: (
    options: { readonly tools: ReadonlyArray<ToolDefinition>; readonly inThought: boolean },
    emit: (delta: Delta) => void
  ) => Decoder
}
