/**
 * The tables of a ledger: sums by account and period, open reservations, marks. Memory, SQL and Redis each have them.
 */
import type * as Effect from "effect/Effect"

/** Whole numbers in the order of `kinds`: model calls, tool calls, tokens, billionths of cost. */
export type Row = readonly [modelCalls: number, toolCalls: number, tokens: number, cost: number]

/** The sum of an account in a period. */
export interface Place {
  readonly account: string
  readonly period: string
}

/** What a reservation adds to a sum. */
export interface Entry extends Place {
  readonly add: Row
  /** The highest sums, before adding, for which it fits. `undefined` is no limit. */
  readonly most: readonly [number | undefined, number | undefined, number | undefined, number | undefined]
  /** Milliseconds until the period ends. */
  readonly lasts: number | undefined
}

/** A failure of the store. */
export interface Fault {
  readonly problem: string
  readonly cause?: unknown
}

/** The sums of an account: all that counts against a cap, and the part of it that open reservations hold. */
export interface Sums {
  readonly total: Row
  readonly reserved: Row
}

export interface Tables {
  /** Adds all entries, or none. Gives the index of an entry that does not fit; `undefined` if all do. */
  readonly take: (id: string, entries: ReadonlyArray<Entry>) => Effect.Effect<number | undefined, Fault>
  /** Ends a reservation, and changes its sums. Does nothing for one that has ended, or never was. */
  readonly settle: (id: string, places: ReadonlyArray<Place>, change: Row) => Effect.Effect<void, Fault>
  readonly read: (place: Place) => Effect.Effect<Sums, Fault>
  readonly mark: (name: string) => Effect.Effect<number, Fault>
  readonly raise: (name: string, value: number) => Effect.Effect<boolean, Fault>
}

/** A reservation that has not settled after an hour counts as used. Its sums do not change by that. */
export const openFor = 3_600_000

/** A reservation can settle for so long after that. Later, what was reserved stays counted. */
export const settlesFor = 24 * 3_600_000

/** Sums are kept for 32 days after their period. The store's own clock measures it: no process deletes by a wrong one. */
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
