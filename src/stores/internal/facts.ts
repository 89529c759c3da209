/** Facts as they are stored, and their limits. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { JsonObject } from "../../core/Json.ts"
import * as Vectors from "../../support/store/vectors.ts"
import { nameProblem } from "../../support/text/names.ts"
import { corrupt } from "./failure.ts"
import type { Fault } from "./table.ts"

/**
 * The most characters of a text, of a category, and of metadata as JSON; the most numbers of a vector; and the most facts
 * of a namespace. The words of a namespace's facts are held in memory.
 */
export const limits = {
  text: 4096,
  category: 64,
  metadata: 16_384,
  dimensions: Vectors.mostDimensions,
  facts: 10_000
} as const

export const Fact = Schema.Struct({
  id: Schema.String,
  text: Schema.String,
  category: Schema.String,
  at: Schema.Finite,
  metadata: JsonObject
})

/** A fact to add. */
export interface NewFact {
  readonly text: string
  /** The category, by default `general`. */
  readonly category?: string | undefined
  readonly metadata?: JsonObject | undefined
  /** The embedding of the text, for search by meaning. */
  readonly vector?: ReadonlyArray<number> | undefined
}

/** Selects facts. */
export interface Query {
  /** Only facts of this category. */
  readonly category?: string | undefined
  /** The most facts to give: 10 by default, at most 100. */
  readonly limit?: number | undefined
}

const decodeFact = Schema.decodeUnknownResult(Schema.fromJsonString(Fact))
const decodeMetadata = Schema.decodeUnknownResult(JsonObject)

/** Reads a stored fact. */
export const readFact = (value: string): Effect.Effect<typeof Fact.Type, Fault> =>
  Effect.mapError(Effect.fromResult(decodeFact(value)), () =>
    corrupt("a fact is not of this version of effect-deepagents")
  )

export const vectorProblem = `a vector has 1 to ${limits.dimensions} finite numbers, not all of them 0`

/** Says why a fact can't be stored; `undefined` if it can. */
export const factProblem = ({ category = "general", metadata = {}, text, vector }: NewFact): string | undefined => {
  if (text.trim() === "") return "the text is empty"
  if (text.length > limits.text) {
    return `the text has ${text.length} characters, and may have ${limits.text}; make it shorter, or several facts of it`
  }
  const problem = nameProblem(category, limits.category)
  if (problem !== undefined) return `the category: ${problem}`
  if (Result.isFailure(decodeMetadata(metadata)) || JSON.stringify(metadata).length > limits.metadata) {
    return `metadata are JSON of at most ${limits.metadata} characters`
  }
  return vector !== undefined && Vectors.unit(vector) === undefined ? vectorProblem : undefined
}
