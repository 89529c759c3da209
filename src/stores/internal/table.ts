/** The interface of tables that every storage implements. */
import type * as Effect from "effect/Effect"
import type { Problem } from "../../support/store/problem.ts"

/** A row. `value` is a text, usually JSON. */
export interface Row {
  readonly key: string
  readonly value: string
}

/** A failure of a storage. `Unavailable` may pass, `Corrupt` doesn't. */
export interface Fault extends Problem {
  readonly reason: "Corrupt" | "Unavailable"
}

/** Selects at most `limit` rows behind the key `after`, in the order of keys (by code points) or backwards. */
export interface Scan {
  readonly after?: string | undefined
  readonly limit: number
  readonly reverse?: boolean | undefined
}

/**
 * Rows by key, in spaces. A space or a key is any text of 1 to 520 characters without control characters. Texts that
 * differ are different names. A write that returned is visible in every process.
 */
export interface Table {
  readonly get: (space: string, key: string) => Effect.Effect<string | undefined, Fault>
  /** Sets all rows or none, over earlier values. */
  readonly put: (space: string, rows: ReadonlyArray<Row>) => Effect.Effect<void, Fault>
  /**
   * Sets a row to `next` if its value is `expected`, and reports whether it did. `undefined` is a missing row. Of several
   * callers that expect the same value, one gets `true`.
   */
  readonly swap: (
    space: string,
    key: string,
    expected: string | undefined,
    next: string | undefined
  ) => Effect.Effect<boolean, Fault>
  readonly scan: (space: string, scan: Scan) => Effect.Effect<ReadonlyArray<Row>, Fault>
  readonly count: (space: string) => Effect.Effect<number, Fault>
  /** Removes all rows of a space. */
  readonly clear: (space: string) => Effect.Effect<void, Fault>
}
