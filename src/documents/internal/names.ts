/** Short texts of documents: ids, names, labels. */
import { cut } from "../../support/text/text.ts"
import { oneLine } from "../../support/text/untrusted.ts"

/** Copies a short text. A slice of a parsed chunk would keep the whole chunk in memory. */
export const copyText = (text: string | undefined, length = 100): string => structuredClone(cut(text ?? "", length, ""))

/** Copies the name of a person, a sheet or a note, on one line. */
export const nameOf = (text: string | undefined): string => structuredClone(cut(oneLine(text ?? ""), 100))
