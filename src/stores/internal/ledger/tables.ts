/**
 * The interface of a ledger's tables: sums by account and period, open reservations, and marks.
 */
import type * as Effect from "effect/Effect"
import type { Problem } from "../../../support/store/problem.ts"

/** Whole numbers in the order of `kinds`: model calls, tool calls, tokens, billionths of cost. */
export type Row = readonly [modelCalls: number, toolCalls: number, tokens: number, cost: number]

/** The sum of an account in a period. */
export interface Place {
  readonly account: string
  readonly period: string
}

/** The amounts that a reservation adds to a sum. */
export interface Entry extends Place {
  readonly add: Row
  /** The highest sums, before adding, for which it fits. `undefined` is no limit. */
  readonly most: readonly [number | undefined, number | undefined, number | undefined, number | undefined]
  /** Milliseconds until the period ends. */
  readonly lasts: number | undefined
}

/** The sums of an account: all that counts against a cap, and the part of open reservations. */
export interface Sums {
  readonly total: Row
  readonly reserved: Row
}

export interface Tables {
  /** Adds all entries or none. Gives the index of an entry that does not fit; `undefined` if all fit. */
  readonly take: (id: string, entries: ReadonlyArray<Entry>) => Effect.Effect<number | undefined, Problem>
  /** Ends a reservation, and changes its sums. Ignores an ended or unknown reservation. */
  readonly settle: (id: string, places: ReadonlyArray<Place>, change: Row) => Effect.Effect<void, Problem>
  readonly read: (place: Place) => Effect.Effect<Sums, Problem>
  readonly mark: (name: string) => Effect.Effect<number, Problem>
  readonly raise: (name: string, value: number) => Effect.Effect<boolean, Problem>
}

/** A reservation that has not settled after an hour counts as used. Its sums do not change by that. */
export const openFor = 3_600_000

/** A reservation can settle for a day after that. Later, its amounts stay counted. */
export const settlesFor = 24 * 3_600_000

/** Sums stay for 32 days after their period, by the clock of the store. */
export const keptFor = 32 * 24 * 3_600_000

/** No sums. */
export const none: Row = [0, 0, 0, 0]

/** Adds two rows. */
export const add = (left: Row, right: Row): Row => [
  left[0] + right[0],
  left[1] + right[1],
  left[2] + right[2],
  left[3] + right[3]
]

/** Subtracts a row from another one. */
export const subtract = (left: Row, right: Row): Row => [
  left[0] - right[0],
  left[1] - right[1],
  left[2] - right[2],
  left[3] - right[3]
]
