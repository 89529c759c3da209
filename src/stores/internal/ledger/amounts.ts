/** Amounts as they enter a ledger, and as its tables have them. */
import * as Arr from "effect/Array"
import * as Result from "effect/Result"
import { type Amounts, kinds, type Reason, type Totals } from "../../../core/Ledger.ts"
import type { Row } from "./tables.ts"

/** Units of the tables in one unit of each kind. Whole numbers add up exactly, fractions of money would not. */
const units: Row = [1, 1, 1, 1_000_000_000]

/** The most of each kind that is taken at once: above, numbers are not exact, or the database's overflow. */
const most: Row = [1e12, 1e12, 1e15, 1e9]

const invalid = (field: string, value: unknown, problem: string): Reason => ({
  _tag: "InvalidAmount",
  field,
  value: typeof value === "number" ? String(value) : `a ${typeof value}`,
  problem
})

const problemOf = (field: string, value: unknown, limit: number): Reason | undefined => {
  if (typeof value !== "number" || !(value >= 0 && value < Infinity))
    return invalid(field, value, "must be a finite number of at least 0")
  return value > limit ? invalid(field, value, `must be at most ${limit}`) : undefined
}

/** The first problem of amounts; `owner` is the option or parameter that they are. */
const amountsProblem = (owner: string, amounts: Amounts): Reason | undefined => {
  for (const [index, kind] of kinds.entries()) {
    const value = amounts[kind]
    if (value === undefined) continue
    const problem = problemOf(`${owner}.${kind}`, value, most[index] ?? 0)
    if (problem !== undefined) return problem
  }
  return undefined
}

const isMoney = (index: number): boolean => index === 3

const toUnits = (amount: number, index: number): number =>
  isMoney(index) ? Math.round(amount * units[3]) : Math.ceil(amount)

/** The row of amounts that are used or wanted. What is missing is 0. */
export const rowOf = (owner: string, amounts: Amounts): Result.Result<Row, Reason> => {
  const problem = amountsProblem(owner, amounts)
  return problem === undefined
    ? Result.succeed([
        toUnits(amounts.modelCalls ?? 0, 0),
        toUnits(amounts.toolCalls ?? 0, 1),
        toUnits(amounts.tokens ?? 0, 2),
        toUnits(amounts.cost ?? 0, 3)
      ])
    : Result.fail(problem)
}

/** Limits as rows have them. `undefined` is no limit. */
export type Limits = readonly [number | undefined, number | undefined, number | undefined, number | undefined]

const limit = (amount: number | undefined, index: number): number | undefined =>
  amount === undefined ? undefined : isMoney(index) ? Math.round(amount * units[3]) : Math.floor(amount)

/** The limits of a cap. */
export const limitsOf = (max: Amounts): Result.Result<Limits, Reason> => {
  const problem = amountsProblem("max", max)
  return problem === undefined
    ? Result.succeed([limit(max.modelCalls, 0), limit(max.toolCalls, 1), limit(max.tokens, 2), limit(max.cost, 3)])
    : Result.fail(problem)
}

const lower = (left: number | undefined, right: number | undefined): number | undefined =>
  left === undefined ? right : right === undefined ? left : Math.min(left, right)

/** The limits of two caps on one sum. */
export const lowest = (left: Limits, right: Limits): Limits => [
  lower(left[0], right[0]),
  lower(left[1], right[1]),
  lower(left[2], right[2]),
  lower(left[3], right[3])
]

/**
 * The highest sums at which wanted amounts still fit. A kind that is not wanted always fits; one that is wanted as 0 fits
 * if anything is left.
 */
export const roomOf = (limits: Limits, want: Amounts, row: Row): Limits => {
  const at = (index: 0 | 1 | 2 | 3): number | undefined => {
    const max = limits[index]
    return max === undefined || want[kinds[index]] === undefined ? undefined : max - Math.max(1, row[index])
  }
  return [at(0), at(1), at(2), at(3)]
}

/** An amount of a row, in the units of people. */
export const amountAt = (row: Row, index: number): number => (row[index] ?? 0) / (units[index] ?? 1)

/** A row in the units of people. */
export const amountsOf = (row: Row): Totals => ({
  modelCalls: amountAt(row, 0),
  toolCalls: amountAt(row, 1),
  tokens: amountAt(row, 2),
  cost: amountAt(row, 3)
})

/** The first kind of a row that does not fit into its room. */
export const firstFull = (total: Row, room: Limits): number =>
  Arr.findFirstIndex(total, (sum, index) => sum > (room[index] ?? Infinity)).pipe((found) =>
    found._tag === "Some" ? found.value : room.findIndex((highest) => highest !== undefined)
  )
