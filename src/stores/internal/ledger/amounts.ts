/** Converts amounts to rows of a ledger and back. */
import * as Arr from "effect/Array"
import * as Result from "effect/Result"
import { type Amounts, kinds, type Reason, type Totals } from "../../../core/Ledger.ts"
import type { Row } from "./tables.ts"

/** The units of a row in one unit of each kind. Whole numbers add up exactly; fractions of money do not. */
const units: Row = [1, 1, 1, 1_000_000_000]

/** The most of each kind at once. Larger numbers are not exact, or overflow in the database. */
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

/** Finds the first problem of amounts; `owner` is the name of their parameter. */
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

/** Converts amounts to a row. A missing amount is 0. */
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

/** Limits in the units of rows. `undefined` is no limit. */
export type Limits = readonly [number | undefined, number | undefined, number | undefined, number | undefined]

const limit = (amount: number | undefined, index: number): number | undefined =>
  amount === undefined ? undefined : isMoney(index) ? Math.round(amount * units[3]) : Math.floor(amount)

/** Converts a cap to limits. */
export const limitsOf = (max: Amounts): Result.Result<Limits, Reason> => {
  const problem = amountsProblem("max", max)
  return problem === undefined
    ? Result.succeed([limit(max.modelCalls, 0), limit(max.toolCalls, 1), limit(max.tokens, 2), limit(max.cost, 3)])
    : Result.fail(problem)
}

const lower = (left: number | undefined, right: number | undefined): number | undefined =>
  left === undefined ? right : right === undefined ? left : Math.min(left, right)

/** Combines the limits of two caps on one sum. */
export const lowest = (left: Limits, right: Limits): Limits => [
  lower(left[0], right[0]),
  lower(left[1], right[1]),
  lower(left[2], right[2]),
  lower(left[3], right[3])
]

/**
 * Gives the highest sums at which amounts still fit. A kind without an amount always fits; the amount 0 fits while
 * anything is left.
 */
export const roomOf = (limits: Limits, want: Amounts, row: Row): Limits => {
  const at = (index: 0 | 1 | 2 | 3): number | undefined => {
    const max = limits[index]
    return max === undefined || want[kinds[index]] === undefined ? undefined : max - Math.max(1, row[index])
  }
  return [at(0), at(1), at(2), at(3)]
}

/** Converts an amount of a row to the unit of its kind. */
export const amountAt = (row: Row, index: number): number => (row[index] ?? 0) / (units[index] ?? 1)

/** Converts a row to amounts. */
export const amountsOf = (row: Row): Totals => ({
  modelCalls: amountAt(row, 0),
  toolCalls: amountAt(row, 1),
  tokens: amountAt(row, 2),
  cost: amountAt(row, 3)
})

/** Finds the first kind of a row that exceeds its room. */
export const firstFull = (total: Row, room: Limits): number =>
  Arr.findFirstIndex(total, (sum, index) => sum > (room[index] ?? Infinity)).pipe((firstIndex) =>
    firstIndex._tag === "Some" ? firstIndex.value : room.findIndex((highest) => highest !== undefined)
  )
