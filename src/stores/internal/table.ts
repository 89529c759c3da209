/** Tables of rows, as every storage has them; public by `Storage`. */
import type * as Effect from "effect/Effect"

/** A row. `value` is a text, usually JSON. */
export interface Row {
  readonly key: string
  readonly value: string
}

/** A failure of a storage: `Unavailable` may pass, `Corrupt` doesn't. */
export interface Fault {
  readonly reason: "Corrupt" | "Unavailable"
  readonly problem: string
  readonly cause?: unknown
}

/** Part of a space: at most `limit` rows behind the key `after`, in the order of keys (by code points) or backwards. */
export interface Scan {
  readonly after?: string | undefined
  readonly limit: number
  readonly reverse?: boolean | undefined
}

/**
 * Rows in spaces. Spaces and keys are any text of 1 to 520 characters without control characters; two that differ are
 * two. What returned is seen by every process.
 */
export interface Table {
  readonly get: (space: string, key: string) => Effect.Effect<string | undefined, Fault>
  /** Sets rows, whatever was there: all or none. */
  readonly put: (space: string, rows: ReadonlyArray<Row>) => Effect.Effect<void, Fault>
  /**
   * Sets a row to `next` if it is what is expected, `undefined` for a row that is not there; says whether it was. Of
   * several who expect the same, one gets `true`.
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
