/** Settings of a Claude model, wherever it is served. */
import type { JsonObject } from "../../../core/Json.ts"
import type { ThinkingLevel } from "../turn/thinking.ts"

/**
 * Thinking before an answer: adaptive, at a level, or within a token budget. Models up to Claude 4.5 accept budgets
 * only, models from 4.7 levels only. Each uses its nearest setting.
 */
export type Thinking =
  | "adaptive"
  | ThinkingLevel
  | {
      /** The most tokens of thinking. */
      readonly budget: number
      /** Lets models up to Claude 4.6 think between tool calls; later ones always do. Default: `false`. */
      readonly interleaved?: boolean | undefined
    }

/**
 * Settings of requests. Only set ones are sent, except `maxTokens`, which the API requires.
 *
 * - `maxTokens`: the longest answer in tokens, thinking included
 * - `temperature`, `topP`, `topK`: only for models up to Claude 4.6
 * - `showThinking`: true returns a summary of the thinking, false only its signature
 * - `effort`: the amount of work for an answer
 * - `cache`: the places and the lifetime of prompt caching; on by default, for five minutes
 * - `serverTools`: tools of Anthropic's, as its API describes them
 * - `parallelToolCalls`: false allows only one tool call per turn
 * - `strictTools`: true holds arguments to their schemas if the API can (models from 4.5 on)
 * - `metadata.userId`: an opaque id of the end user
 * - `parameters`: request fields without an option here, by the API's names. Parameters of a single request win, and
 *   `null` removes one
 */
export interface Settings {
  /** The longest answer in tokens, thinking included. Default: by the model, 8,192 for an unknown one. */
  readonly maxTokens?: number | undefined
  /** The randomness of the answer, from 0 to 1; only for models up to Claude 4.6. Default: the API's own. */
  readonly temperature?: number | undefined
  /**
   * Samples from the likeliest tokens with this share of probability; only for models up to Claude 4.6. Default: the
   * API's own.
   */
  readonly topP?: number | undefined
  /** Samples from this many likeliest tokens; only for models up to Claude 4.6. Default: the API's own. */
  readonly topK?: number | undefined
  /** Texts that end the answer. Default: none. */
  readonly stopSequences?: ReadonlyArray<string> | undefined
  /** Thinking before an answer. Default: the API's own. */
  readonly thinking?: Thinking | undefined
  /** `true` returns a summary of the thinking, `false` only its signature. Default: the API's own. */
  readonly showThinking?: boolean | undefined
  /** The amount of work for an answer. Default: the API's own. */
  readonly effort?: "low" | "medium" | "high" | "xhigh" | "max" | undefined
  /** Prompt caching and its lifetime; `off` turns it off. Default: five minutes. */
  readonly cache?:
    | "off"
    | {
        /** The lifetime of the cache. */
        readonly ttl: "5m" | "1h"
      }
    | undefined
  /** `false` allows only one tool call a turn. Default: `true`. */
  readonly parallelToolCalls?: boolean | undefined
  /** `true` holds arguments to their schemas if the API can (models from 4.5 on). Default: `false`. */
  readonly strictTools?: boolean | undefined
  /**
   * Tools of Anthropic's, as its API describes them. It runs some (web search …). Those that the client executes (`bash`,
   * text editor, memory, computer, browser) stand for the agent's tool of their name. Default: none.
   */
  readonly serverTools?: ReadonlyArray<JsonObject> | undefined
  /** Facts about the request for Anthropic. Default: none. */
  readonly metadata?:
    | {
        /** An opaque id of the end user. */
        readonly userId: string
      }
    | undefined
  /**
   * Request fields without an option here, by the API's names. Fields of a single request win, and `null` there
   * removes one. Default: none.
   */
  readonly parameters?: JsonObject | undefined
}

/** Gives the time that a prompt stays cached; `undefined` when caching is off. */
export const cacheTtl = (settings: Settings): "5m" | "1h" | undefined =>
  settings.cache === "off" ? undefined : (settings.cache?.ttl ?? "5m")
