/** The failure of a change after threads were moved, and its form in the errors of databases. */
import type { Fault } from "../tables.ts"

/** Makes the failure. */
export const movedTo = (to: string, cause?: unknown): Fault => ({
  reason: { _tag: "Moved", to },
  ...(cause === undefined ? {} : { cause })
})

/** The beginning of the error of a database. The place follows, and a line feed. */
export const beginning = "the sessions were moved to: "

const raised = new RegExp(`${beginning}([^\\n]*)`, "u")

/** Reads the place from the error of a database. */
export const placeIn = (message: string | undefined): string | undefined => raised.exec(message ?? "")?.[1]
