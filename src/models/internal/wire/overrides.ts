/** Facts of a model that a layer may be given where the built-in table is wrong or does not know it. */
import type { Prices } from "../../../core/Usage.ts"

/**
 * - `contextWindowTokens`: in tokens
 * - `prices`: US dollars for a million tokens
 * - `structuredOutput`: an answer in a schema comes by the API's own means (`native`) or by a call of a tool
 */
export interface Overrides {
  readonly contextWindowTokens?: number | undefined
  readonly supportsVision?: boolean | undefined
  readonly prices?: Prices | undefined
  readonly structuredOutput?: "native" | "tool" | undefined
}
