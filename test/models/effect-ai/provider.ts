/** A provider of `effect/ai` that streams a test's answers. */
import { Context, Effect, Layer, Stream } from "effect"
import { type AiError, LanguageModel, type Response } from "effect/ai"

export type Part = Response.StreamPartEncoded

/** The answer to one request. */
export type Answer = ReadonlyArray<Part> | Stream.Stream<Part, AiError.AiError>

/** The requests to the provider so far. */
export class Provider extends Context.Service<
  Provider,
  { readonly requests: Effect.Effect<ReadonlyArray<LanguageModel.ProviderOptions>> }
>()("test/effect-ai/Provider") {}

export const requests = Provider.use((provider) => provider.requests)

const isParts = (answer: Answer): answer is ReadonlyArray<Part> => Array.isArray(answer)

export const script = (
  answers: ReadonlyArray<Answer | ((request: LanguageModel.ProviderOptions) => Answer)>,
  options?: { readonly supportsSystemMessagesInHistory?: boolean }
): Layer.Layer<LanguageModel.LanguageModel | Provider> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const seen: Array<LanguageModel.ProviderOptions> = []
      const inside = options?.supportsSystemMessagesInHistory
      const model = yield* LanguageModel.make({
        generateText: () => Effect.die("this provider streams only"),
        streamText: (request) =>
          Stream.suspend(() => {
            const answer = answers[seen.length]
            seen.push(request)
            if (answer === undefined) return Stream.die(`there is no answer ${seen.length}`)
            const said = typeof answer === "function" ? answer(request) : answer
            return isParts(said) ? Stream.fromIterable(said) : said
          }),
        ...(inside === undefined ? {} : { supportsSystemMessagesInHistory: Effect.succeed(inside) })
      })
      return Context.make(LanguageModel.LanguageModel, model).pipe(
        Context.add(Provider, { requests: Effect.sync(() => seen.slice()) })
      )
    })
  )

const noUsage = { inputTokens: {}, outputTokens: {} }

export const finish = (
  reason: Response.FinishReason = "stop",
  rest: Partial<Response.FinishPartEncoded> = {}
): Part => ({ type: "finish", reason, usage: noUsage, ...rest })

/** A text in pieces. */
export const text = (...pieces: ReadonlyArray<string>): ReadonlyArray<Part> => [
  { type: "text-start", id: "t" },
  ...pieces.map((delta): Part => ({ type: "text-delta", id: "t", delta })),
  { type: "text-end", id: "t" }
]

/** Reasoning in pieces, signed at its end. */
export const reasoning = (
  pieces: ReadonlyArray<string>,
  metadata?: Response.ProviderMetadata,
  id = "r"
): ReadonlyArray<Part> => [
  { type: "reasoning-start", id },
  ...pieces.map((delta): Part => ({ type: "reasoning-delta", id, delta })),
  { type: "reasoning-end", id, ...(metadata === undefined ? {} : { metadata }) }
]

/** A call whose arguments are streamed before it is complete. */
export const call = (
  id: string,
  name: string,
  params: unknown,
  ...pieces: ReadonlyArray<string>
): ReadonlyArray<Part> => [
  { type: "tool-params-start", id, name },
  ...(pieces.length === 0 ? [JSON.stringify(params)] : pieces).map((delta): Part => ({
    type: "tool-params-delta",
    id,
    delta
  })),
  { type: "tool-params-end", id },
  { type: "tool-call", id, name, params }
]
