/** Keys from the environment. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ModelError } from "../../../core/ModelError.ts"

/** The key in a variable. Where it is missing or blank, the error says which variable to set. */
export const keyFrom = Effect.fnUntraced(function* (
  variable: string,
  origin: { readonly provider: string; readonly model: string }
): Effect.fn.Return<Redacted.Redacted, ModelError> {
  const missing = new ModelError({
    provider: origin.provider,
    model: origin.model,
    reason: { _tag: "Authentication" },
    detail: `there is no API key: set ${variable}, or give apiKey`
  })
  const key = yield* Effect.mapError(Config.Redacted(variable), () => missing)
  return Redacted.value(key).trim() === "" ? yield* missing : key
})
