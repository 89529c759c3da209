/** Phrases of a search, and excerpts of hits. */
import * as Effect from "effect/Effect"
import { text } from "../../core/Message.ts"
import type { StoredEntry } from "../../core/SessionStore.ts"
import { headOf } from "../../support/text/text.ts"
import { wordPieces, words } from "../../support/text/words.ts"

/** The phrases of a query. The last word of each may be the beginning of a word. */
export type Phrases = ReadonlyArray<ReadonlyArray<string>>

/** The most characters, phrases, and words of a phrase in a query. Longer queries are slow and find no more. */
const bounds = { characters: 10_000, phrases: 32, words: 32 }

/** Reads the phrases of a query, the longest first. Words without a space between them are one phrase. */
export const phrases = (query: string): Phrases => {
  const byText = new Map<string, ReadonlyArray<string>>()
  for (const part of headOf(query, bounds.characters).split(/\s+/u)) {
    const phrase = words(part).slice(0, bounds.words)
    if (phrase.length > 0) byText.set(phrase.join(" "), phrase)
  }
  return [...byText]
    .sort(([left], [right]) => right.length - left.length)
    .slice(0, bounds.phrases)
    .map(([, phrase]) => phrase)
}

/** Characters that are searched in one turn of the event loop: some milliseconds. */
const perTurn = 131_072

/** The pace of a search: the characters that are left until other fibers run. */
export interface Pace {
  left: number
}

/** Makes the pace of a search. All its texts share it. */
export const makePace = (): Pace => ({ left: perTurn })

/** Counts characters, and lets other fibers run after some. */
export const spend = (pace: Pace, characters: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    pace.left -= characters
    if (pace.left >= 0) return Effect.void
    pace.left = perTurn
    return Effect.yieldNow
  })

/** The words of a text that may be long. */
export const findWords = Effect.fnUntraced(function* (value: string, pace: Pace) {
  const lists: Array<ReadonlyArray<string>> = []
  for (const piece of wordPieces(value)) {
    yield* spend(pace, piece.length)
    lists.push(words(piece))
  }
  return lists.flat()
})

/** The length of the longest end of each beginning of `body` that `body` begins with, too. */
const bordersOf = (body: ReadonlyArray<string>): ReadonlyArray<number> => {
  const borders = [0]
  let border = 0
  for (const word of body.slice(1)) {
    while (border > 0 && body[border] !== word) border = borders[border - 1] ?? 0
    if (body[border] === word) border++
    borders.push(border)
  }
  return borders
}

/** Looks for a phrase in words that come one by one. A word costs the same, however often the phrase nearly fits. */
const makeFinder = (phrase: ReadonlyArray<string>): ((word: string) => boolean) => {
  const body = phrase.slice(0, -1)
  const end = phrase.at(-1) ?? ""
  const borders = bordersOf(body)
  let fitting = 0
  return (word) => {
    if (fitting === body.length && word.startsWith(end)) return true
    while (fitting > 0 && body[fitting] !== word) fitting = borders[fitting - 1] ?? 0
    if (fitting < body.length && body[fitting] === word) fitting++
    return false
  }
}

/** Reports whether a text has all phrases. */
export const matches = Effect.fnUntraced(function* (value: string, wanted: Phrases, pace: Pace) {
  let missing = wanted.map(makeFinder)
  for (const piece of wordPieces(value)) {
    yield* spend(pace, piece.length + 1)
    const document = words(piece)
    missing = missing.filter((isEnd) => !document.some((word) => isEnd(word)))
    if (missing.length === 0) return true
  }
  return false
})

const around = 80

/** The first place where a phrase may begin; 0 if none is found. */
const findPlace = Effect.fnUntraced(function* (value: string, wanted: Phrases, pace: Pace) {
  let start = 0
  for (const piece of wordPieces(value)) {
    yield* spend(pace, piece.length)
    const lower = piece.toLowerCase()
    const places = wanted.map((phrase) => lower.indexOf(phrase[0] ?? "")).filter((place) => place >= 0)
    if (places.length > 0) return start + Math.min(...places)
    start += piece.length
  }
  return 0
})

/** Gives the text around the first possible place of a phrase, on one line. */
export const excerpt = Effect.fnUntraced(function* (value: string, wanted: Phrases, pace: Pace) {
  const start = Math.max(0, (yield* findPlace(value, wanted, pace)) - around)
  const cut = value.slice(start, start + 2 * around).toWellFormed()
  const line = cut.replaceAll(/\s+/gu, " ").trim()
  return `${start > 0 ? "…" : ""}${line}${start + 2 * around < value.length ? "…" : ""}`
})

/** The searched text of a message. Other entries have none. */
export const searchable = ({ entry }: StoredEntry): string | undefined =>
  entry._tag === "Message" ? text(entry.message) : undefined
