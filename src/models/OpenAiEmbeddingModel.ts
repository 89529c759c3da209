/**
 * Texts as vectors, by any server that has OpenAI's embeddings endpoint: OpenAI, Ollama, Gemini, Mistral, vLLM … The
 * `EmbeddingModel` of `effect/ai`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { EmbeddingModel } from "effect/ai"
 * import * as OpenAiEmbeddingModel from "effect-deepagents/models/OpenAiEmbeddingModel"
 *
 * const local = OpenAiEmbeddingModel.layer({ model: "nomic-embed-text", baseURL: "http://localhost:11434/v1" })
 *
 * const vector = Effect.gen(function* () {
 *   const model = yield* EmbeddingModel.EmbeddingModel
 *   return (yield* model.embed("What is Effect?")).vector
 * }).pipe(Effect.provide(local))
 * ```
 *
 * No package is needed. Gemini is at `https://generativelanguage.googleapis.com/v1beta/openai`.
 */
import * as AiError from "effect/ai/AiError"
import * as EmbeddingModel from "effect/ai/EmbeddingModel"
import * as Arr from "effect/Array"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Configured, fromConfigured } from "../core/Configured.ts"
import { isModelError, type ModelError } from "../core/ModelError.ts"
import { defined } from "../support/defined.ts"
import { toReason } from "./internal/effectAi/errors.ts"
import { badResponse, connectionError, type Origin, providerError } from "./internal/errors.ts"
import { guardedFetch, timeoutOf } from "./internal/guardedFetch.ts"
import { keyFrom } from "./internal/keys.ts"
import { errorBody, failureOf } from "./internal/openai/failure.ts"
import { silent } from "./internal/patience.ts"
import { countOf, listOf, objectOf, objectsOf, parse, placeOf } from "./internal/read.ts"
import { wellFormed } from "./internal/wellFormed.ts"

/**
 * Options of a layer. Only `model` is needed.
 *
 * - `baseURL`: address of the API, its version included; OpenAI by default
 * - `apiKey`: from `OPENAI_API_KEY` by default, where `baseURL` is not given
 * - `dimensions`: the length of the vectors, which is sent, and which not every model can change. Without it the server
 *   is asked for one vector when the layer is built, to see how long they are
 * - `batchSize`: the most texts of one request, 96 by default. Longer lists are sent in several
 * - `timeout`: of one request, a minute by default
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly model: string
  readonly baseURL?: string | undefined
  readonly apiKey?: Redacted.Redacted | undefined
  readonly dimensions?: number | undefined
  readonly batchSize?: number | undefined
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly timeout?: Duration.Input | undefined
}

const provider = "openai"

const isVector = Schema.is(Schema.Array(Schema.Finite))

/** Vectors in the order of the texts, and the tokens that they were. */
interface Embedded {
  readonly vectors: ReadonlyArray<Array<number>>
  readonly tokens: number
}

const read = (origin: Origin, text: string, count: number): Result.Result<Embedded, ModelError> => {
  const parsed = parse(text)
  const body = Result.isSuccess(parsed) ? objectOf(parsed.success) : undefined
  if (body === undefined) return Result.fail(badResponse(origin, "the answer is not a JSON object"))
  const vectors = new Map<number, Array<number>>()
  for (const [place, one] of objectsOf(body["data"]).entries()) {
    const vector = listOf(one["embedding"])
    if (vector.length > 0 && isVector(vector)) vectors.set(placeOf(one["index"]) ?? place, [...vector])
  }
  const ordered = Array.from({ length: count }, (_, index) => vectors.get(index)).filter((one) => one !== undefined)
  if (ordered.length < count || new Set(ordered.map(({ length }) => length)).size > 1) {
    return Result.fail(badResponse(origin, `the answer has no vector of one length for each of ${count} texts`))
  }
  return Result.succeed({ vectors: ordered, tokens: countOf(objectOf(body["usage"])?.["prompt_tokens"]) ?? 0 })
}

const makeClient = (options: Options, key: Redacted.Redacted | undefined) => {
  const { baseURL = "https://api.openai.com/v1", dimensions, model, timeout = "1 minute" } = options
  const headers: Record<string, string> = { "content-type": "application/json" }
  if (key !== undefined) headers["authorization"] = `Bearer ${Redacted.value(key)}`
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    headers[name] = Redacted.isRedacted(value) ? Redacted.value(value) : value
  }
  const secrets = [key, ...Object.values(options.headers ?? {})].flatMap((one) =>
    Redacted.isRedacted(one) ? [Redacted.value(one)] : []
  )
  const url = `${baseURL.replace(/\/+$/, "")}/embeddings`

  return (inputs: ReadonlyArray<string>): Effect.Effect<Embedded, ModelError> => {
    const input = inputs.map(wellFormed)
    const origin: Origin = { provider, model, secrets, said: () => input }
    const fetch = guardedFetch(options.fetch ?? globalThis.fetch, origin, { timeout, readError: errorBody })
    const ask = async (signal: AbortSignal): Promise<string> => {
      const body = JSON.stringify(defined({ model, input, dimensions, encoding_format: "float" }))
      const response = await fetch(url, { method: "POST", headers, body, signal })
      const text = await response.text()
      if (response.ok) return text
      const parsed = parse(text)
      const error = Result.isSuccess(parsed) ? objectOf(parsed.success)?.["error"] : undefined
      return Promise.reject(
        providerError(origin, { ...failureOf(error), status: response.status, headers: response.headers })
      )
    }
    const idle = timeoutOf(timeout)
    return Effect.tryPromise({
      try: ask,
      catch: (cause) => (isModelError(cause) ? cause : connectionError(origin, cause))
    }).pipe(
      Effect.timeoutOrElse({ duration: idle, orElse: () => Effect.fail(silent(origin, idle)) }),
      Effect.flatMap((text) => Effect.fromResult(read(origin, text, inputs.length)))
    )
  }
}

const make = Effect.fn("OpenAiEmbeddingModel.make")(function* (options: Options) {
  const { batchSize = 96, baseURL, model } = options
  const key =
    options.apiKey ?? (baseURL === undefined ? yield* keyFrom("OPENAI_API_KEY", { provider, model }) : undefined)
  const embed = makeClient(options, key)
  const dimensions = options.dimensions ?? (yield* embed(["length"])).vectors[0]?.length ?? 0
  const service = yield* EmbeddingModel.make({
    embedMany: ({ inputs }) =>
      Effect.forEach(Arr.chunksOf(inputs, Math.max(1, Math.floor(batchSize) || 1)), embed).pipe(
        Effect.map((batches) => ({
          results: batches.flatMap(({ vectors }) => vectors),
          usage: { inputTokens: batches.reduce((sum, { tokens }) => sum + tokens, 0) }
        })),
        Effect.mapError((error) =>
          AiError.make({ module: "OpenAiEmbeddingModel", method: "embedMany", reason: toReason(error) })
        )
      )
  })
  return Context.make(EmbeddingModel.EmbeddingModel, service).pipe(Context.add(EmbeddingModel.Dimensions, dimensions))
})

/**
 * A layer of the model, with the dimensions of its vectors. Building it fails with `Authentication` where there is no
 * key, and, without `dimensions`, as the first request does.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError> =>
  Layer.effectContext(make(options))

/**
 * As {@link layer}, with options of which any may be a `Config`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<EmbeddingModel.EmbeddingModel | EmbeddingModel.Dimensions, ModelError | Config.ConfigError> =>
  Layer.effectContext(Effect.flatMap(fromConfigured<Options>(options), make))
