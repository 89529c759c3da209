/** The words of a text, for search. */

/** Scripts that put no spaces between words: each character counts as a word. */
const unspaced = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`
/** A word that is longer counts as several: without a bound, one of millions of characters overflows the stack. */
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}\\p{M}]){1,100000}`, "gu")

/** The most characters of a piece: some milliseconds of work. */
const longest = 65_536

const isBetweenWords = new RegExp(`^(?:[^\\p{L}\\p{N}\\p{M}]|[${unspaced}])`, "u")

/** The last place of a text where no word is cut, between `start` and `end`; `end` if there is none. */
const cutBefore = (text: string, start: number, end: number): number => {
  for (let at = end; at > start; at--) {
    const isLowSurrogate = (text.charCodeAt(at) & 0xfc00) === 0xdc00
    if (!isLowSurrogate && isBetweenWords.test(text.slice(at, at + 2))) return at
  }
  return end
}

/** Cuts a text between words, so that nobody has to look at all of a long one at once. */
export const wordPieces = function* (text: string): Generator<string> {
  let start = 0
  while (text.length - start > longest) {
    const end = cutBefore(text, start, start + longest)
    yield text.slice(start, end)
    start = end
  }
  yield text.slice(start)
}

/** The words of a text, as they are compared: in lower case, and compatible characters as one. */
export const words = (text: string): ReadonlyArray<string> => text.normalize("NFKC").toLowerCase().match(word) ?? []
