/** Checks the ids of threads and entries. */
import { nameProblem } from "../../support/text/names.ts"

/** The problem of a text as the id of a thread, or the name of a label. */
export const threadIdProblem = (id: string): string | undefined => nameProblem(id, 512)

/** The problem of a text as the id of an entry. */
export const entryIdProblem = (id: string): string | undefined => nameProblem(id, 128)

/**
 * Replaces an invalid id by the empty text, which finds nothing. Databases reject a zero character and half of a surrogate
 * pair.
 */
export const key = (id: string): string => (id.includes("\u0000") || !id.isWellFormed() ? "" : id)
