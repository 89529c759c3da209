/** Reads wire data without trusting it. A value of another type counts as missing. */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"

export const stringOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** A finite number. */
export const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/** A place in a list. Some servers write their numbers as texts. */
export const placeOf = (value: unknown): number | undefined =>
  typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : numberOf(value)

/** Reads a count: a number that is not negative. */
export const countOf = (value: unknown): number | undefined => {
  const number = numberOf(value)
  return number === undefined ? undefined : Math.min(Math.max(0, number), Number.MAX_SAFE_INTEGER)
}

export const objectOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)

/** Shared, since most fields are missing. */
const none: ReadonlyArray<never> = []

export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : none)

/** The objects of a list, in order. */
export const objectsOf = (value: unknown): ReadonlyArray<JsonObject> =>
  Array.isArray(value) ? value.filter(isObject) : none

/** One object of the keys of all; the last one wins. */
export const merge = (...objects: ReadonlyArray<{ readonly [key: string]: Json }>): JsonObject =>
  Object.assign({}, ...objects)

/** Parses JSON without checking its shape. */
export const parse = (text: string): Result.Result<unknown, unknown> => Result.try((): unknown => JSON.parse(text))
