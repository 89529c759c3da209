/** The words of passages and queries. */
import { words } from "../../support/text/words.ts"

/** The most words of a query that are searched. */
const most = 64

/** The places between the words of a name: `read|Options`, `HTML|Parser`. */
const inner = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu

/** The words of a text, and the words in names of code: `readOptions` is also `read` and `options`. */
export const wordsIn = (text: string): ReadonlyArray<string> => {
  const names = text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  const parts = names.flatMap((name) => {
    const divided = name.replaceAll(inner, " ")
    return divided.length === name.length ? [] : words(divided)
  })
  return parts.length === 0 ? words(text) : [...words(text), ...parts]
}

/** The words of a query, each once. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  [...new Set(wordsIn(text.slice(0, 20_000)))].slice(0, most)
