/** The words of a query. */
import { words } from "../../support/text/words.ts"

/** The most words of a query that are searched. */
const most = 64

/** The words of a query, each once. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  [...new Set(words(text.slice(0, 20_000)))].slice(0, most)
