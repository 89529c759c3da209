/** Vertex AI, where Google serves Gemini and Claude. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { ModelError } from "../../../core/ModelError.ts"

/** A project of Google Cloud. */
export interface Vertex {
  /** The id of the project. */
  readonly project: string
  /** A region, or `global` (the default). */
  readonly location?: string | undefined
  /** Gives a token for each request: tokens live for an hour. */
  readonly accessToken: Effect.Effect<Redacted.Redacted, ModelError>
}
