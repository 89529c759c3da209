/**
 * Probabilities of the tokens of an answer, of every provider that gives them in one form.
 *
 * They are asked for by the provider's own parameters: `logprobs` and `top_logprobs` of Chat Completions and Ollama,
 * `top_logprobs` and `include: ["message.output_text.logprobs"]` of OpenAI's Responses, `generationConfig:
 * { responseLogprobs: true, logprobs: 2 }` of Gemini.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Logprobs } from "effect-deepagents/models"
 *
 * const judge = Agent.make({ name: "judge", prompt: "Answer yes or no.", parameters: { logprobs: true, top_logprobs: 2 } })
 *
 * const sure = Agent.run(judge, "Is Effect a library?").pipe(
 *   Effect.map(({ newMessages }) => newMessages.flatMap(Logprobs.of).map(({ logprob }) => Math.exp(logprob)))
 * )
 * ```
 */
import type { JsonObject } from "../core/Json.ts"
import type { Message } from "../core/Message.ts"
import { numberOf, objectOf, objectsOf, stringOf } from "./internal/wire/read.ts"

/**
 * A token, the natural logarithm of its probability, and the tokens that could have stood there, as far as they were
 * asked for.
 */
export interface Logprob {
  readonly token: string
  readonly logprob: number
  readonly top: ReadonlyArray<Pick<Logprob, "token" | "logprob">>
}

const readLogprob = (wire: JsonObject): ReadonlyArray<Pick<Logprob, "token" | "logprob">> => {
  const [token, logprob] = [stringOf(wire["token"]), numberOf(wire["logprob"])]
  return token === undefined || logprob === undefined ? [] : [{ token, logprob }]
}

const keptIn = (providerData: JsonObject | undefined): ReadonlyArray<Logprob> =>
  Object.values(providerData ?? {}).flatMap((data) =>
    objectsOf(objectOf(data)?.["logprobs"]).flatMap((one) =>
      readLogprob(one).map((own) => ({ ...own, top: objectsOf(one["top_logprobs"]).flatMap(readLogprob) }))
    )
  )

/** Reads the probabilities that came with a message, in the order of its tokens; none where none were asked for. */
export const of = (message: Message): ReadonlyArray<Logprob> =>
  message.role === "ai"
    ? [
        ...keptIn(message.providerData),
        ...message.content.flatMap((block) => (block.type === "text" ? keptIn(block.providerData) : []))
      ]
    : []
