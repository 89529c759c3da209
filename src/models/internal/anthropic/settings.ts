/** Settings of a Claude model, wherever it is served. */
import type { JsonObject } from "../../../core/Json.ts"
import type { ThinkingLevel } from "../turn/thinking.ts"

/**
 * Thinking before an answer: as much as it finds right, at a level, or within a budget (tokens). Models up to Claude 4.5
 * have budgets only, those from 4.7 on levels only: each takes what is nearest. `interleaved` lets models up to 4.6
 * think between tool calls too; later ones always do.
 */
export type Thinking =
  | "adaptive"
  | ThinkingLevel
  | { readonly budget: number; readonly interleaved?: boolean | undefined }

/**
 * Settings of requests. Only what is set is sent, except `maxTokens`, which the API insists on.
 *
 * - `maxTokens`: the longest answer, thinking included, in tokens
 * - `temperature`, `topP`, `topK`: only for models up to Claude 4.6; later ones refuse them
 * - `showThinking`: whether the text of thinking comes back (summarised), or only what proves it
 * - `effort`: how much work goes into an answer
 * - `cache`: where prompts are cached and for how long; on by default, for five minutes
 * - `serverTools`: tools that Anthropic runs itself (web search …), as its API describes them
 * - `parallelToolCalls`: whether the model may ask for several tools in one turn; it may, unless this is false
 * - `strictTools`: whether arguments are held to the schemas of their tools, as far as the API takes them (models from
 *   4.5 on)
 * - `metadata.userId`: an opaque id of the end user
 * - `parameters`: fields of a request that have no option here, by the API's names. Those of a single request win over
 *   all of these; a `null` there takes one out
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
