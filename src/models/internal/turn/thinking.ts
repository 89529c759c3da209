/** Thinking before an answer, said in one way to every model: a level, or so many tokens. */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { numberOf } from "../wire/read.ts"

/** A level of thinking, or a token budget. A model uses its nearest setting. */
export type ThinkingLevel =
  | "off"
  | "low"
  | "medium"
  | "high"
  | {
      /** The most tokens of thinking. */
      readonly budget: number
    }

/** Every effort that some provider knows, least first. */
export const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const

export type Effort = (typeof efforts)[number]

const levels: ReadonlySet<unknown> = new Set(["off", "low", "medium", "high"])

const isLevel = (value: unknown): value is "off" | "low" | "medium" | "high" => levels.has(value)

/** The tokens of each level, for models that are given a budget. */
const budgets = { off: 0, low: 2_048, medium: 8_192, high: 24_576 } as const

/** Reads a level. Anything else under that name is a provider's own parameter. */
export const thinkingFrom = (value: unknown): ThinkingLevel | undefined => {
  if (isLevel(value)) return value
  const budget = isObject(value) && Object.keys(value).length === 1 ? numberOf(value["budget"]) : undefined
  return budget === undefined ? undefined : { budget: Math.max(0, Math.floor(budget)) }
}

/** The budget of a level, in tokens. */
export const budgetOf = (level: ThinkingLevel): number => (typeof level === "object" ? level.budget : budgets[level])

/** Finds the nearest effort to a level among those that a model accepts. `undefined` if it accepts none. */
export const effortOf = (level: ThinkingLevel, taken: ReadonlyArray<Effort> = efforts): Effort | undefined => {
  const wanted = efforts.indexOf(level === "off" ? "none" : typeof level === "string" ? level : nearestTo(level.budget))
  const distanceTo = (effort: Effort): number => Math.abs(efforts.indexOf(effort) - wanted)
  return taken.reduce<Effort | undefined>(
    (best, effort) => (best === undefined || distanceTo(effort) < distanceTo(best) ? effort : best),
    undefined
  )
}

const nearestTo = (budget: number): Effort => {
  if (budget <= 0) return "none"
  if (budget <= budgets.low) return "low"
  return budget <= budgets.medium ? "medium" : "high"
}

/**
 * Replaces the level under `thinking` by a provider's own fields. The last of several layers wins, and `null` removes a
 * value.
 */
export const withThinking = (
  layers: ReadonlyArray<JsonObject>,
  fieldsOf: (level: ThinkingLevel) => JsonObject
): ReadonlyArray<JsonObject> => {
  const last = layers.findLastIndex(({ thinking }) => thinking !== undefined)
  if (last < 0) return layers
  return layers.flatMap((layer, index) => {
    const level = thinkingFrom(layer["thinking"])
    if (level === undefined) return [layer]
    const { thinking: _, ...rest } = layer
    return index === last ? [fieldsOf(level), rest] : [rest]
  })
}

/** Reports whether the layers ask for thinking of a model that can't be told of it. */
export const isUnheard = (
  layers: ReadonlyArray<JsonObject>,
  fieldsOf: (level: ThinkingLevel) => JsonObject
): boolean => {
  const level = thinkingFrom(layers.findLast(({ thinking }) => thinking !== undefined)?.["thinking"])
  return level !== undefined && budgetOf(level) > 0 && Object.keys(fieldsOf(level)).length === 0
}
