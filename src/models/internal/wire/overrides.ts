/** Facts about a model, for models that the built-in table lacks or gets wrong. */
import type { Ability } from "../../../core/ChatModel.ts"
import type { Prices } from "../../../core/Usage.ts"

/** Facts about a model. They replace the facts of the catalogue. */
export interface Overrides {
  /** The model's window in tokens. Default: the catalogue's value. */
  readonly contextWindowTokens?: number | undefined
  /** Whether the model reads images. Default: the catalogue's value. */
  readonly supportsVision?: boolean | undefined
  /** US dollars for a million tokens. Default: the catalogue's prices. */
  readonly prices?: Prices | undefined
  /**
   * Gives an answer in a schema by the API's own means (`native`) or by a tool call (`tool`). Default: the
   * catalogue's value.
   */
  readonly structuredOutput?: "native" | "tool" | undefined
  /**
   * What the provider does by itself: finds tools (`toolSearch`), compacts conversations (`compaction`). Default: known
   * for OpenAI's and Anthropic's own addresses.
   */
  readonly abilities?: ReadonlyArray<Ability> | undefined
}
