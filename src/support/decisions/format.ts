/** The parts that wire formats of decisions share. `DecisionModel.make` validates the answers that are read here. */
import type * as Decision from "effect/ai/Decision"
import type * as DecisionModel from "effect/ai/DecisionModel"
import * as Predicate from "effect/Predicate"
import type { JsonObject } from "effect/Schema"

/** Decisions that both formats have. */
export type DecisionRequest = DecisionModel.ProviderOptions<Exclude<Decision.Any, Decision.Locate>>

/** A wire format: its path, its request, the answers in its response. */
export interface Format {
  readonly provider: string
  readonly baseURL: string
  readonly path: string
  /** The advice for a server that lacks the path. */
  readonly otherwise: string
  readonly supportsImages?: boolean | undefined
  readonly write: (asked: DecisionRequest, model: string) => object
  readonly read: (
    response: JsonObject,
    asked: DecisionRequest
  ) => Readonly<Record<string, DecisionModel.ProviderAnswer>>
}

/** A description as a text. */
export const wordsOf = (description: Decision.Description | null | undefined): string | undefined =>
  description === null || description === undefined
    ? undefined
    : typeof description === "string"
      ? description
      : JSON.stringify(description)

/** A probability, a rating or a confidence; `NaN`, which no decision accepts, for anything else. */
export const measureOf = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) ? value : Number.NaN

/** The optional confidence of an answer. */
export const confidenceOf = ({ confidence }: JsonObject): { readonly confidence?: number } =>
  confidence === undefined || confidence === null ? {} : { confidence: measureOf(confidence) }

/** A distribution by labels; `undefined` if a label stands twice. */
export const distributionOf = (
  entries: ReadonlyArray<readonly [label: string, probability: unknown]>
): Record<string, number> | undefined =>
  new Set(entries.map(([label]) => label)).size === entries.length
    ? Object.fromEntries(entries.map(([label, probability]) => [label, measureOf(probability)]))
    : undefined

/** Reads an object of a response. */
export const objectOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)

const isObject = (value: unknown): value is JsonObject => Predicate.isObject(value) && !Array.isArray(value)

/** Reads the objects of a list. */
export const objectsOf = (value: unknown): ReadonlyArray<JsonObject> =>
  Array.isArray(value) ? value.filter(isObject) : []

/** Reads a text; an empty one for anything else. */
export const textIn = (value: unknown): string => (typeof value === "string" ? value : "")

/** The name of a question, by its place. A key of a decision may have any characters. */
export const nameAt = (index: number): string => `q${index + 1}`
