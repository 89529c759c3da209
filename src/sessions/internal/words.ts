/** Phrases of a search, and excerpts of hits. */
import { text } from "../../core/Message.ts"
import type { Stored } from "../../core/SessionStore.ts"
import { headOf } from "../../support/text/text.ts"
import { words } from "../../support/text/words.ts"

/** The phrases of a query. The last word of each may be the beginning of a word. */
export type Phrases = ReadonlyArray<ReadonlyArray<string>>

/** The most characters, phrases, and words of a phrase in a query. Longer queries are slow and find no more. */
const bounds = { characters: 10_000, phrases: 32, words: 32 }

/** Reads the phrases of a query, the longest first. Words without a space between them are one phrase. */
export const phrases = (query: string): Phrases => {
  const known = new Map<string, ReadonlyArray<string>>()
  for (const part of headOf(query, bounds.characters).split(/\s+/u)) {
    const phrase = words(part).slice(0, bounds.words)
    if (phrase.length > 0) known.set(phrase.join(" "), phrase)
  }
  return [...known]
    .sort(([left], [right]) => right.length - left.length)
    .slice(0, bounds.phrases)
    .map(([, phrase]) => phrase)
}

const holds = (document: ReadonlyArray<string>, phrase: ReadonlyArray<string>): boolean => {
  const last = phrase.length - 1
  for (let start = 0; start + last < document.length; start++) {
    let index = 0
    while (index < last && document[start + index] === phrase[index]) index++
    if (index === last && document[start + last]?.startsWith(phrase[last] ?? "") === true) return true
  }
  return false
}

/** Reports whether a text has all phrases. */
export const matches = (value: string, wanted: Phrases): boolean => {
  const document = words(value)
  return wanted.every((phrase) => holds(document, phrase))
}

const around = 80

/** Gives the text around the first possible place of a phrase, on one line. */
export const excerpt = (value: string, wanted: Phrases): string => {
  const lower = value.toLowerCase()
  const places = wanted.map((phrase) => lower.indexOf(phrase[0] ?? "")).filter((place) => place >= 0)
  const start = Math.max(0, Math.min(...(places.length > 0 ? places : [0])) - around)
  const cut = value.slice(start, start + 2 * around).toWellFormed()
  const line = cut.replaceAll(/\s+/gu, " ").trim()
  return `${start > 0 ? "…" : ""}${line}${start + 2 * around < value.length ? "…" : ""}`
}

/** The searched text of a message. Other entries have none. */
export const searchable = ({ entry }: Stored): string | undefined =>
  entry._tag === "Message" ? text(entry.message) : undefined
