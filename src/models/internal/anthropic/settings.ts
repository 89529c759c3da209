/** Settings of a Claude model, wherever it is served. */
import type { JsonObject } from "../../../core/Json.ts"
import type { ThinkingLevel } from "../turn/thinking.ts"

/**
 * Thinking before an answer: adaptive, at a level, or within a token budget. Models up to Claude 4.5 accept budgets
 * only, models from 4.7 levels only. Each uses its nearest setting. `interleaved` lets models up to 4.6 think between
 * tool calls; later ones always do.
 */
export type Thinking =
  | "adaptive"
  | ThinkingLevel
  | { readonly budget: number; readonly interleaved?: boolean | undefined }

/**
 * Settings of requests. Only set ones are sent, except `maxTokens`, which the API requires.
 *
 * - `maxTokens`: the longest answer in tokens, thinking included
 * - `temperature`, `topP`, `topK`: only for models up to Claude 4.6
 * - `showThinking`: true returns a summary of the thinking, false only its signature
 * - `effort`: the amount of work for an answer
 * - `cache`: the places and the lifetime of prompt caching; on by default, for five minutes
 * - `serverTools`: tools that Anthropic runs (web search …), as its API describes them
 * - `parallelToolCalls`: false allows only one tool call per turn
 * - `strictTools`: true holds arguments to their schemas if the API can (models from 4.5 on)
 * - `metadata.userId`: an opaque id of the end user
 * - `parameters`: request fields without an option here, by the API's names. Parameters of a single request win, and
 *   `null` removes one
 */
export interface Settings {
  readonly maxTokens?: number | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly topK?: number | undefined
  readonly stopSequences?: ReadonlyArray<string> | undefined
  readonly thinking?: Thinking | undefined
  readonly showThinking?: boolean | undefined
  readonly effort?: "low" | "medium" | "high" | "xhigh" | "max" | undefined
  readonly cache?: "off" | { readonly ttl: "5m" | "1h" } | undefined
  readonly parallelToolCalls?: boolean | undefined
  readonly strictTools?: boolean | undefined
  readonly serverTools?: ReadonlyArray<JsonObject> | undefined
  readonly metadata?: { readonly userId: string } | undefined
  readonly parameters?: JsonObject | undefined
}

/** Gives the time that a prompt stays cached; `undefined` when caching is off. */
export const cacheTtl = (settings: Settings): "5m" | "1h" | undefined =>
  settings.cache === "off" ? undefined : (settings.cache?.ttl ?? "5m")
