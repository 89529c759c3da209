/** Thinking before an answer, said in one way to every model: a level, or so many tokens. */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { numberOf } from "../wire/read.ts"

/** A level of thinking, or a token budget. A model uses its nearest setting. */
export type ThinkingLevel =
  | "off"
  | "low"
  | "medium"
  | "high"
  | "xhigh"
  | "max"
  | {
      /** The most tokens of thinking. */
      readonly budget: number
    }

/** Every effort that some provider knows, least first. */
export const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const

export type Effort = (typeof efforts)[number]

const levels: ReadonlySet<unknown> = new Set(["off", "low", "medium", "high", "xhigh", "max"])

const isLevel = (value: unknown): value is Exclude<ThinkingLevel, object> => levels.has(value)

/** The tokens of each level, for models that are given a budget. */
const budgets = { off: 0, low: 2_048, medium: 8_192, high: 24_576, xhigh: 32_768, max: 65_536 } as const

/** Reads a level. Anything else under that name is a provider's own parameter. */
export const thinkingFrom = (value: unknown): ThinkingLevel | undefined => {
  if (isLevel(value)) return value
  const budget = isObject(value) && Object.keys(value).length === 1 ? numberOf(value["budget"]) : undefined
  return budget === undefined ? undefined : { budget: Math.max(0, Math.floor(budget)) }
}

/** The budget of a level, in tokens. */
export const budgetOf = (level: ThinkingLevel): number => (typeof level === "object" ? level.budget : budgets[level])

/** Finds the nearest effort to a level that a model accepts. `undefined` if it accepts no effort. */
export const effortOf = (
  level: ThinkingLevel,
  acceptedEfforts: ReadonlyArray<Effort> = efforts
): Effort | undefined => {
  const wanted = efforts.indexOf(level === "off" ? "none" : typeof level === "string" ? level : nearestTo(level.budget))
  const distanceTo = (effort: Effort): number => Math.abs(efforts.indexOf(effort) - wanted)
  return acceptedEfforts.reduce<Effort | undefined>(
    (best, effort) => (best === undefined || distanceTo(effort) < distanceTo(best) ? effort : best),
    undefined
  )
}

const nearestTo = (budget: number): Effort => {
  if (budget <= 0) return "none"
  if (budget <= budgets.low) return "low"
  if (budget <= budgets.medium) return "medium"
  if (budget <= budgets.xhigh) return "high"
  return budget <= budgets.max ? "xhigh" : "max"
}

/** Finds the effort that the layers ask a model for, if they do so by a level. */
export const askedEffort = (
  layers: ReadonlyArray<JsonObject>,
  acceptedEfforts: ReadonlyArray<Effort> | undefined
): Effort | undefined => {
  const level = thinkingFrom(layers.findLast(({ thinking }) => thinking !== undefined)?.["thinking"])
  return level === undefined ? undefined : effortOf(level, acceptedEfforts)
}

/** The efforts of a model. A refused effort is not requested again while the layer lives. */
export interface Efforts {
  /** The efforts to choose from. `undefined` if any may be tried. */
  readonly taken: () => ReadonlyArray<Effort> | undefined
  /** Remembers a refusal. False if no other effort is left. */
  readonly refuse: (effort: Effort) => boolean
}

/** Makes the efforts of a layer. */
export const makeEfforts = (knownEfforts: ReadonlyArray<Effort> | undefined): Efforts => {
  const refused = new Set<Effort>()
  const listAccepted = (): ReadonlyArray<Effort> | undefined =>
    refused.size === 0 ? knownEfforts : (knownEfforts ?? efforts).filter((effort) => !refused.has(effort))
  return {
    taken: listAccepted,
    refuse: (effort) => {
      if (refused.has(effort)) return false
      refused.add(effort)
      return listAccepted()?.length !== 0
    }
  }
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
