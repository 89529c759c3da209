/** A server of decisions. `DecisionModel.make` validates its answers. */
import * as AiError from "effect/ai/AiError"
import * as DecisionModel from "effect/ai/DecisionModel"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { isModelError, type ModelError } from "../../../core/ModelError.ts"
import type { DecisionRequest, Format } from "../../../support/decisions/format.ts"
import { bearer, type GivenHeaders } from "../../../support/store/redacted.ts"
import { toReason } from "../../bridges/internal/effectAi/errors.ts"
import { readFailure } from "../openai/failure.ts"
import { wellFormedJson } from "../turn/wellFormed.ts"
import { badResponse } from "../wire/errors.ts"
import { makePost } from "../wire/post.ts"
import { countOf, objectOf, parse, stringOf } from "../wire/read.ts"
import { textsOf } from "../wire/secrets.ts"

/** Connection to a server of decisions. */
export interface Connection {
  /** The id of the model. */
  readonly model: string
  /** The API key. Default: none, and of `OPENAI_API_KEY` at OpenAI's own address. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Headers of each request. Default: none. */
  readonly headers?: GivenHeaders | undefined
  /** Makes HTTP requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** The time limit of one request. Default: 1 minute. */
  readonly timeout?: Duration.Input | undefined
}

export const toAiError = (error: { readonly message: string }): AiError.AiError => {
  const reason = isModelError(error) ? toReason(error) : new AiError.InvalidOutputError({ description: error.message })
  return AiError.make({ module: "DecisionModels", method: "decide", reason })
}

/** Makes a decision model of a server. */
export const makeServer = (
  { apiKey, fetch, headers, model, timeout = "1 minute" }: Connection,
  { baseURL, otherwise, path, provider, read, supportsImages, write }: Format
): Effect.Effect<DecisionModel.DecisionModel> => {
  const missing = `this server has no ${path}: ${otherwise}`
  const post = makePost({
    provider,
    model,
    url: `${baseURL.replace(/\/+$/, "")}${path}`,
    headers: { ...bearer(apiKey), ...headers },
    fetch,
    timeout,
    hints: { 404: missing, 405: missing, 501: missing },
    failure: readFailure
  })
  const decide = Effect.fnUntraced(function* (
    request: DecisionRequest
  ): Effect.fn.Return<DecisionModel.ProviderResponse, ModelError> {
    const body = write({ ...request, state: wellFormedJson(request.state) }, model)
    const { origin, text } = yield* post(body, () => textsOf(request.state, "arguments"))
    const response = objectOf(Result.getOrUndefined(parse(text)))
    if (response === undefined) return yield* badResponse(origin, "the answer is not a JSON object")
    const usage = objectOf(response["usage"])
    return {
      answers: read(response, request),
      modelId: stringOf(response["model"]),
      usage: { inputTokens: countOf(usage?.["input_tokens"]), outputTokens: countOf(usage?.["output_tokens"]) }
    }
  })
  return DecisionModel.make({
    decide: (request) => Effect.mapError(decide(request), toAiError),
    // Servers round: the sum may be off by half of this decimal place for each label.
    probabilityPrecision: 4,
    supportsImages
  })
}
