/** A server that speaks Chat Completions, as data: the parameters that it takes and refuses, and its models. */
import type { Prices } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Dialect } from "../../ToolSchema.ts"
import { type Effort, efforts } from "../turn/thinking.ts"

/**
 * One model. `efforts` are those that it takes, least first: none where it does not reason, or can't be told how much.
 * Prices are US dollars for a million tokens, those of the shorter context where a model has two.
 */
export interface ModelFacts {
  readonly contextWindowTokens: number
  readonly vision: boolean
  readonly efforts: ReadonlyArray<Effort>
  readonly prices?: Prices | undefined
}

/**
 * The ways of a server.
 *
 * - `maxTokens`: its name for the limit of an answer
 * - `streamOptions`: whether it takes the field that asks for usage (who does not, gives it anyway)
 * - `callIds`: the longest call id, in characters; `exactly` so many letters and digits
 * - `reasoning`: whose reasoning an assistant message carries: that of the model that is asked, or (`each`) every
 *   message has the field, if with nothing in it
 * - `tag`: the tag around thoughts that stand in the text
 * - `signatures`: calls go back with what proves that the model thought of them, and others with a word that excuses it
 * - `documents`, `audio`: how a PDF and a recording are sent
 * - `humanAfterTools`: a human turn may stand behind results
 * - `forcedTools`: a model can be made to call a tool; where it can't, it is told to
 * - `native`: the models that hold an answer to a schema by themselves while they are offered tools, too; of others it
 *   comes by a call of a tool
 * - `thinking`: the field that says how much a model thinks
 */
export interface Ways {
  readonly maxTokens: "max_tokens" | "max_completion_tokens"
  readonly streamOptions: boolean
  readonly callIds: { readonly length: number; readonly exactly?: true | undefined }
  readonly schemas: Dialect
  readonly reasoning: "own" | "each"
  readonly tag: "think" | "thought"
  readonly signatures: boolean
  readonly documents: "file" | "document_url" | "none"
  readonly audio: boolean
  readonly humanAfterTools: boolean
  readonly forcedTools: boolean
  readonly native?: RegExp | undefined
  readonly thinking: "effort" | "google" | "reasoning" | "toggle" | "deepseek" | "template"
}

/** A server: its address, the variable of its key, its ways, its models, and what is assumed of others. */
export interface Server {
  readonly name: string
  readonly baseURL: string
  readonly key?: string | undefined
  readonly ways: Ways
  readonly models: { readonly [model: string]: ModelFacts }
  readonly assumed?: Partial<ModelFacts> | undefined
}

/** A server of which nothing is known but the protocol. */
export const plain: Ways = {
  maxTokens: "max_tokens",
  streamOptions: true,
  callIds: { length: 40 },
  schemas: "openai",
  reasoning: "own",
  tag: "think",
  signatures: false,
  documents: "file",
  audio: true,
  humanAfterTools: true,
  forcedTools: true,
  thinking: "effort"
}

/** A server that reads text and pictures, and nothing else. */
export const pictures: Ways = { ...plain, documents: "none", audio: false }

const kinds = {
  /** Does not reason, or reasons as it likes. */
  plain: [],
  onOff: ["none", "high"],
  three: ["low", "medium", "high"],
  four: ["none", "low", "medium", "high"],
  minimal: ["minimal", "low", "medium", "high"],
  top: ["none", "high", "max"],
  all: efforts.slice(0, 5)
} as const satisfies { readonly [kind: string]: ReadonlyArray<Effort> }

/** A row of a table: the window in thousands of tokens (or exactly), what the model can, its prices. */
export const row = (
  window: number,
  kind: keyof typeof kinds,
  sees: "sees" | "reads",
  input?: number,
  output?: number,
  cacheRead?: number
): ModelFacts => ({
  contextWindowTokens: window,
  vision: sees === "sees",
  efforts: kinds[kind],
  ...(input === undefined || output === undefined ? {} : { prices: defined({ input, output, cacheRead }) })
})
