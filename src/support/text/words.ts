/** The words of a text, for search. */

/** Scripts that put no spaces between words: each character counts as a word. */
const unspaced = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`
/** A word that is longer counts as several: without a bound, one of millions of characters overflows the stack. */
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}\\p{M}]){1,100000}`, "gu")

/** The words of a text, as they are compared: in lower case, and compatible characters as one. */
export const words = (text: string): ReadonlyArray<string> => text.normalize("NFKC").toLowerCase().match(word) ?? []
