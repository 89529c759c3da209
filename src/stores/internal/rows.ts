/** Rows in memory, in the order of their keys. */
import { compareText } from "../../support/text/text.ts"
import type { Row, Scan } from "./table.ts"

/** Values by key, read in the order of keys. */
export interface Rows<A> {
  readonly map: Map<string, A>
  /** The sorted keys; `undefined` if they must be sorted again. */
  keys: Array<string> | undefined
}

export const empty = <A>(): Rows<A> => ({ map: new Map(), keys: [] })

export const setRow = <A>(rows: Rows<A>, key: string, value: A): void => {
  if (!rows.map.has(key) && rows.keys !== undefined) {
    const last = rows.keys.at(-1)
    if (last === undefined || compareText(last, key) < 0) rows.keys.push(key)
    else rows.keys = undefined
  }
  rows.map.set(key, value)
}

export const remove = <A>(rows: Rows<A>, key: string): void => {
  if (rows.map.delete(key)) rows.keys = undefined
}

export const clear = <A>(rows: Rows<A>): void => {
  rows.map.clear()
  rows.keys = []
}

/** Counts the keys up to a key, itself included. */
const countUpTo = (keys: ReadonlyArray<string>, key: string): number => {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareText(keys[middle] ?? "", key) <= 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Selects rows in the order of their keys, or backwards. */
export const scan = <A>(
  rows: Rows<A>,
  options: Scan,
  valueOf: (value: A | undefined) => string | undefined
): ReadonlyArray<Row> => keysOf(rows, options).map((key) => ({ key, value: valueOf(rows.map.get(key)) ?? "" }))

const keysOf = <A>(rows: Rows<A>, { after, limit, reverse }: Scan): ReadonlyArray<string> => {
  rows.keys ??= [...rows.map.keys()].sort(compareText)
  const { keys } = rows
  if (reverse !== true) {
    const from = after === undefined ? 0 : countUpTo(keys, after)
    return keys.slice(from, from + limit)
  }
  const passed = after === undefined ? keys.length : countUpTo(keys, after)
  const end = keys[passed - 1] === after ? passed - 1 : passed
  return keys.slice(Math.max(0, end - limit), end).reverse()
}
