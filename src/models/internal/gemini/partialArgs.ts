/**
 * Arguments of a call that Gemini streams in parts, each with a JSON Path (RFC 9535) of names and indices. See `PartialArg`
 * of https://docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Content.
 */
import type { Json, JsonObject } from "../../../core/Json.ts"
import { numberOf, objectsOf, stringOf } from "../wire/read.ts"

/** A step of a path: a name in an object, or an index in a list. */
type Step = string | number

const step = /\.([^.[\]'"]+)|\[(\d{1,5})\]|\['([^']*)'\]|\["([^"]*)"\]/y

const mostSteps = 64

/** The most places of a list that a part may skip. Skipped places become nulls, so a short path can't make a large list. */
const mostSkipped = 16

/** Reads a path. `undefined` for one of another form, or too long. */
const stepsOf = (path: string): ReadonlyArray<Step> | undefined => {
  if (!path.startsWith("$")) return undefined
  const steps: Array<Step> = []
  step.lastIndex = 1
  while (step.lastIndex < path.length) {
    const match = step.exec(path)
    if (match === null || steps.length === mostSteps) return undefined
    const [, name, index, single, double] = match
    steps.push(index === undefined ? (name ?? single ?? double ?? "") : Number(index))
  }
  return steps.length === 0 ? undefined : steps
}

/** A value while it grows. Objects are maps: a name such as `__proto__` is only a name. */
type Draft = Map<string, Draft> | Array<Draft> | Exclude<Json, object>

const toJson = (draft: Draft): Json => {
  if (Array.isArray(draft)) return Array.from(draft, (item) => toJson(item ?? null))
  if (draft instanceof Map) return Object.fromEntries(Array.from(draft, ([name, value]) => [name, toJson(value)]))
  return draft
}

const valueIn = (part: JsonObject): Exclude<Json, object> | undefined => {
  if ("nullValue" in part) return null
  const { boolValue: truth } = part
  return (
    stringOf(part["stringValue"]) ?? numberOf(part["numberValue"]) ?? (typeof truth === "boolean" ? truth : undefined)
  )
}

/** Puts a value at a path. A text continues the text that is there. Reports whether the path fits what is there. */
const putValue = (root: Draft, steps: ReadonlyArray<Step>, value: Exclude<Json, object>): boolean => {
  let place: Draft | undefined = root
  for (const [at, step] of steps.entries()) {
    const next = steps[at + 1]
    const before: Draft | undefined =
      place instanceof Map && typeof step === "string"
        ? place.get(step)
        : Array.isArray(place) && typeof step === "number"
          ? place[step]
          : undefined
    const after: Draft =
      next === undefined
        ? typeof before === "string" && typeof value === "string"
          ? before + value
          : value
        : (before ?? (typeof next === "number" ? [] : new Map<string, Draft>()))
    if (place instanceof Map && typeof step === "string") place.set(step, after)
    else if (Array.isArray(place) && typeof step === "number" && step <= place.length + mostSkipped) place[step] = after
    else return false
    place = after
  }
  return true
}

/** The arguments of one call. */
export interface PartialArgs {
  /** Adds the parts of an event. Gives the first path that can't be used. */
  readonly add: (parts: unknown) => string | undefined
  /** The arguments so far. */
  readonly value: () => Json
}

/** Makes the empty arguments of a call. */
export const makePartialArgs = (): PartialArgs => {
  const root: Draft = new Map<string, Draft>()
  return {
    add: (parts) => {
      for (const part of objectsOf(parts)) {
        const path = stringOf(part["jsonPath"]) ?? ""
        const value = valueIn(part)
        const steps = stepsOf(path)
        // A text may end with a part that has no value.
        if (value === undefined) continue
        if (steps === undefined || !putValue(root, steps, value)) return path
      }
      return undefined
    },
    value: () => toJson(root)
  }
}
