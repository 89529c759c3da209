/** Failures of node-llama-cpp as a `ModelError`. */
import { isModelError, ModelError, type Reason } from "../../../core/ModelError.ts"
import { defined } from "../../../support/json/defined.ts"

/** The model that a failure is of. */
export interface Origin {
  readonly provider: string
  readonly model: string
}

/** Makes an error of this model. */
export const errorOf = (origin: Origin, reason: Reason, detail: string, cause?: unknown): ModelError =>
  new ModelError(defined({ provider: origin.provider, model: origin.model, reason, detail, cause }))

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** A failure while the library or the model was loaded. */
export const loadError =
  (origin: Origin, what: "binary" | "file" | "model") =>
  (cause: unknown): ModelError => {
    if (isModelError(cause)) return cause
    const message = messageOf(cause)
    if (what === "binary") {
      const detail = `no llama.cpp binary for this machine could be loaded (${message}); build one with: npx node-llama-cpp source download`
      return errorOf(origin, { _tag: "Unsupported" }, detail, cause)
    }
    if (what === "file") return errorOf(origin, { _tag: "InvalidRequest" }, `no such model file: ${message}`, cause)
    if (/memory|\bv?ram\b/i.test(message)) {
      const detail = `not enough memory (${message}); take a smaller model, contextSize or number of sequences`
      return errorOf(origin, { _tag: "Unsupported" }, detail, cause)
    }
    return errorOf(origin, { _tag: "InvalidRequest" }, `the model could not be loaded: ${message}`, cause)
  }

/** A failure while a turn was generated. */
export const turnError =
  (origin: Origin) =>
  (cause: unknown): ModelError =>
    isModelError(cause) ? cause : errorOf(origin, { _tag: "Unknown" }, messageOf(cause), cause)
