/** Keys from the environment. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { Service } from "../../../core/ChatModel.ts"
import { ModelError } from "../../../core/ModelError.ts"

/** Names the variables of the key and of the address in the failures that they mend. */
export const nameVariables = (
  model: Service,
  { address, key }: { readonly address?: string | undefined; readonly key?: string | undefined }
): Service => {
  const explain = (error: ModelError): ModelError => {
    const { detail = "", isRefused, reason } = error
    if (isRefused) return address === undefined ? error : error.withDetail(`${detail} or ${address}`)
    if (reason._tag !== "Authentication" || key === undefined || detail.includes(key)) return error
    return error.withDetail(`${detail === "" ? "" : `${detail}; `}its variable is ${key}`)
  }
  return {
    ...model,
    makeSession: Effect.map(model.makeSession, (session) => ({
      ...session,
      nextTurn: (request) => Stream.mapError(session.nextTurn(request), explain)
    }))
  }
}

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
