/** Scripts that put no spaces between words: each character counts as a word. */
const unspaced = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`
/** A word that is longer counts as several: without a bound, one of millions of characters overflows the stack. */
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}\\p{M}]){1,100000}`, "gu")

const fold = (value: string): string => value.normalize("NFKC").toLowerCase()

/** The words of a text, as they are compared. */
export const words = (value: string): ReadonlyArray<string> => fold(value).match(word) ?? []
