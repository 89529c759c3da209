/** A table of rows in memory. */
import * as Effect from "effect/Effect"
import * as Rows from "./rows.ts"
import type { Table } from "./table.ts"

/** Makes an empty table. */
export const make = (): Table => {
  const spaces = new Map<string, Rows.Rows<string>>()
  const rowsOf = (space: string) => spaces.get(space) ?? Rows.empty<string>()
  const change = (space: string, body: (rows: Rows.Rows<string>) => void): void => {
    const rows = rowsOf(space)
    body(rows)
    if (rows.map.size === 0) spaces.delete(space)
    else spaces.set(space, rows)
  }
  return {
    get: (space, key) => Effect.sync(() => rowsOf(space).map.get(key)),
    put: (space, added) =>
      Effect.sync(() => change(space, (rows) => added.forEach(({ key, value }) => Rows.setRow(rows, key, value)))),
    swap: (space, key, expected, next) =>
      Effect.sync(() => {
        if (rowsOf(space).map.get(key) !== expected) return false
        change(space, (rows) => (next === undefined ? Rows.remove(rows, key) : Rows.setRow(rows, key, next)))
        return true
      }),
    scan: (space, options) => Effect.sync(() => Rows.scan(rowsOf(space), options, (value) => value)),
    count: (space) => Effect.sync(() => rowsOf(space).map.size),
    clear: (space) => Effect.sync(() => void spaces.delete(space))
  }
}
