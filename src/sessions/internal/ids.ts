/** Ids of threads and entries, as callers give them and as databases can have them. */
import { nameProblem } from "../../support/text/names.ts"

/** Says why a text can't be the id of a thread, or the name of a label. */
export const threadIdProblem = (id: string): string | undefined => nameProblem(id, 512)

/** Says why a text can't be the id of an entry. */
export const entryIdProblem = (id: string): string | undefined => nameProblem(id, 128)

/**
 * A text as a database can have it. No database takes a zero character or half of a surrogate pair, and no id has them:
 * such a text is replaced by the empty one, which is no id either and finds nothing.
 */
export const key = (id: string): string => (id.includes("\u0000") || !id.isWellFormed() ? "" : id)
