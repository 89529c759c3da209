/** Texts as vectors, by any server that has a request for it. */
import * as AiError from "effect/ai/AiError"
import * as EmbeddingModel from "effect/ai/EmbeddingModel"
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { GivenHeaders } from "../../../support/store/redacted.ts"
import { toReason } from "../../bridges/internal/effectAi/errors.ts"
import { wellFormed } from "../turn/wellFormed.ts"
import { badResponse, type Origin } from "./errors.ts"
import { makePost } from "./post.ts"
import { listOf, objectOf, parse } from "./read.ts"

/** Settings that every embedding model has. */
export interface EmbeddingOptions {
  /** The id of the model. */
  readonly model: string
  /** The address of the server. Default: the provider's own. */
  readonly baseURL?: string | undefined
  /** The API key. Default: the provider's environment variable, unless `baseURL` is set. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The length of the vectors. Shortened vectors of Gemini are not normalised. Default: the model's own. */
  readonly dimensions?: number | undefined
  /** The most texts of one request. Default: 96; 100 for Gemini, and on Vertex AI 9, or 1 for Gemini models. */
  readonly batchSize?: number | undefined
  /** Headers of each request. Default: none. */
  readonly headers?: GivenHeaders | undefined
  /** Makes HTTP requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** The time limit of one request. Default: 1 minute. */
  readonly timeout?: Duration.Input | undefined
}

/**
 * The wire format of an embedding server: its request body, and the vectors in its answer by the index of their text.
 */
export interface Api {
  readonly module: string
  readonly provider: string
  readonly url: string
  /** Additional headers. Secrets are `Redacted`. */
  readonly headers: GivenHeaders
  /** The bearer token, if it changes over time. */
  readonly token?: Effect.Effect<Redacted.Redacted, ModelError> | undefined
  readonly body: (texts: ReadonlyArray<string>) => object
  readonly read: (answer: JsonObject) => {
    readonly vectors: ReadonlyArray<readonly [place: number, vector: unknown]>
    readonly tokens: number
  }
  readonly failure: (origin: Origin, text: string, response: Response) => ModelError
  readonly batchSize: number
}

const isVector = Schema.is(Schema.Array(Schema.Finite))

/** Vectors in the order of the texts, and the tokens that they were. */
interface EmbeddingResult {
  readonly vectors: ReadonlyArray<Array<number>>
  readonly tokens: number
}

const readAnswer = (
  api: Api,
  origin: Origin,
  text: string,
  count: number
): Result.Result<EmbeddingResult, ModelError> => {
  const body = objectOf(Result.getOrUndefined(parse(text)))
  if (body === undefined) return Result.fail(badResponse(origin, "the answer is not a JSON object"))
  const { tokens, vectors } = api.read(body)
  const placed = new Map<number, Array<number>>()
  for (const [place, one] of vectors) {
    const vector = listOf(one)
    if (vector.length > 0 && isVector(vector)) placed.set(place, [...vector])
  }
  const ordered = Array.from({ length: count }, (_, index) => placed.get(index)).filter((one) => one !== undefined)
  if (ordered.length < count || new Set(ordered.map(({ length }) => length)).size > 1) {
    return Result.fail(badResponse(origin, `the answer has no vector of one length for each of ${count} texts`))
  }
  return Result.succeed({ vectors: ordered, tokens })
}

const makeClient = (options: EmbeddingOptions, api: Api) => {
  const { fetch, model, timeout = "1 minute" } = options
  const headers = { ...api.headers, ...options.headers }
  const post = makePost({ ...api, model, headers, fetch, timeout })
  return (inputs: ReadonlyArray<string>): Effect.Effect<EmbeddingResult, ModelError> => {
    const texts = inputs.map(wellFormed)
    return Effect.flatMap(api.token ?? Effect.undefined, (token) =>
      Effect.flatMap(
        post(api.body(texts), () => texts, token),
        ({ origin, text }) => Effect.fromResult(readAnswer(api, origin, text, inputs.length))
      )
    )
  }
}

/** Makes the model, and asks for one vector where nobody says how long they are. */
export const makeEmbedding = Effect.fnUntraced(function* (options: EmbeddingOptions, api: Api) {
  const batchSize = Math.max(1, Math.floor(options.batchSize ?? api.batchSize) || 1)
  const embed = makeClient(options, api)
  const dimensions = options.dimensions ?? (yield* embed(["length"])).vectors[0]?.length ?? 0
  const service = yield* EmbeddingModel.make({
    embedMany: ({ inputs }) =>
      Effect.forEach(Arr.chunksOf(inputs, batchSize), embed).pipe(
        Effect.map((batches) => ({
          results: batches.flatMap(({ vectors }) => vectors),
          usage: { inputTokens: batches.reduce((sum, { tokens }) => sum + tokens, 0) }
        })),
        Effect.mapError((error) => AiError.make({ module: api.module, method: "embedMany", reason: toReason(error) }))
      )
  })
  return Context.make(EmbeddingModel.EmbeddingModel, service).pipe(Context.add(EmbeddingModel.Dimensions, dimensions))
})
