/** Finds citations such as `[2]` in answers, and the sentences that they support. */

/** The key of a chunk as a source. Spaces may have chunks of the same id, and neither name has a tab. */
export const sourceKeyOf = (namespace: string, chunk: string): string => `${chunk}\tin ${namespace}`

/** Reads the id of a chunk from the key of a source; `undefined` for sources that are not of the namespace. */
export const chunkOfKey = (namespace: string, key: string): string | undefined => {
  const end = sourceKeyOf(namespace, "")
  return key.endsWith(end) ? key.slice(0, -end.length) : undefined
}

/** Code: its brackets are no citations. */
const code = /```[\s\S]*?(?:```|$)|~~~[\s\S]*?(?:~~~|$)|`[^`\n]*`/g

const citation = /(?<![\w\])])\[(\d{1,3}(?:\s{0,2},\s{0,2}\d{1,3}){0,19})\](?![(\w])/g

/** A sentence and the numbers that it cites. */
export interface Claim {
  readonly text: string
  readonly numbers: ReadonlyArray<number>
}

const numbersIn = (text: string): ReadonlyArray<number> => [
  ...new Set([...text.matchAll(citation)].flatMap((match) => (match[1] ?? "").split(",").map(Number)))
]

/** The end of a sentence before its citations. */
const early = /([.!?…]{1,3})([ \t]{0,3}(?:\[\d{1,3}(?:\s{0,2},\s{0,2}\d{1,3}){0,19}\][ \t]{0,3})+)/g

const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" })

/** The numbers that an answer cites, each once. */
export const citedNumbers = (answer: string): ReadonlyArray<number> => numbersIn(answer.replaceAll(code, " "))

/** The sentences of an answer that cite something, and at most 40 of them. */
export const claimsOf = (answer: string): ReadonlyArray<Claim> =>
  [...segmenter.segment(answer.slice(0, 50_000).replaceAll(code, " ").replaceAll(early, " $2$1 "))]
    .map(({ segment }) => ({ text: segment.replaceAll(citation, "").trim(), numbers: numbersIn(segment) }))
    .filter(({ numbers, text }) => numbers.length > 0 && text !== "")
    .slice(0, 40)
