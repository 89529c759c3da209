/** Vertex AI, where Google serves Gemini and Claude. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { ModelError } from "../../../core/ModelError.ts"

/** A project of Google Cloud. `accessToken` is asked for each request: tokens live for an hour. */
export interface Vertex {
  readonly project: string
  /** A region, or `global` (the default). */
  readonly location?: string | undefined
  readonly accessToken: Effect.Effect<Redacted.Redacted, ModelError>
}
