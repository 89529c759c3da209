/** The mark of a store whose threads were moved, as databases carry it in the failure of a statement. */
import type { Fault } from "./tables.ts"

/** The failure of a change in a store whose threads were moved. */
export const movedTo = (to: string, cause?: unknown): Fault => ({
  reason: { _tag: "Moved", to },
  ...(cause === undefined ? {} : { cause })
})

/** The beginning of the failure that a database raises. The place follows, and a line end. */
export const beginning = "the sessions were moved to: "

const raised = new RegExp(`${beginning}([^\\n]*)`, "u")

/** The place that the failure of a database names, if it is the failure of a store whose threads were moved. */
export const placeIn = (message: string | undefined): string | undefined => raised.exec(message ?? "")?.[1]
