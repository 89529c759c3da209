/** Makes the vectors of passages and queries. */
import type { AiError } from "effect/ai/AiError"
import { EmbeddingModel } from "effect/ai/EmbeddingModel"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Embeds, Model, Space } from "../RagIndex.ts"
import { storable } from "./entries.ts"

type Vectors = ReadonlyArray<ReadonlyArray<number>>

/** Makes vectors of texts; `undefined` for a space without a model. */
const embed = <M extends Model | undefined>(
  space: Space<M>,
  textsFor: (model: Model) => ReadonlyArray<string>
): Effect.Effect<Vectors | undefined, AiError, Embeds<M>> => {
  const { model } = space
  if (model === undefined) return Effect.undefined
  const vectors = EmbeddingModel.use((service) =>
    Effect.map(
      // Servers refuse half characters.
      Effect.forEach(Arr.chunksOf(textsFor(model).map(storable), 256), (texts) => service.embedMany(texts)),
      (answers) => answers.flatMap(({ embeddings }) => embeddings.map(({ vector }) => vector))
    )
  )
  // A space with a model needs this service by its type.
  return vectors as Effect.Effect<Vectors, AiError, unknown> as Effect.Effect<Vectors, AiError, Embeds<M>>
}

/** Makes the vectors of passages. */
export const embedPassages = <M extends Model | undefined>(
  space: Space<M>,
  texts: ReadonlyArray<string>
): Effect.Effect<Vectors | undefined, AiError, Embeds<M>> =>
  embed(space, ({ passage = "" }) => texts.map((text) => passage + text))

/** Makes the vector of a query. */
export const embedQuery = <M extends Model | undefined>(
  space: Space<M>,
  text: string
): Effect.Effect<ReadonlyArray<number> | undefined, AiError, Embeds<M>> =>
  Effect.map(
    embed(space, ({ query = "" }) => [query + text]),
    (vectors) => vectors?.[0]
  )
