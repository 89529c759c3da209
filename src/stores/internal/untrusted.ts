/** Everything that a model or a person may take for the end of a line. */
const breaks = /\r\n|[\r\n\v\f\u0085\u2028\u2029]/g

/** What nobody sees: control characters, and format characters that hide or turn text. Joiners belong to the script. */
const unseen = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/gu

const plain = (text: string): string => text.replaceAll(breaks, "\n").replaceAll(unseen, "")

/** A text as a block quote: every line of it begins with `>`, so none can begin like a line of the answer. */
export const quote = (text: string): string => plain(text).replaceAll(/^/gm, "> ")

/** A text on one line. */
export const oneLine = (text: string): string => plain(text).replaceAll(/\s+/g, " ").trim()
