/**
 * Finds a text that is in a file but for typographic quotes, dashes, special spaces, composed characters, or spaces at the
 * ends of lines. Only one place may fit.
 */
import { forEachOccurrence } from "../search/find.ts"
import { typed } from "./fold.ts"

/** A text in its plain form, with the place of each unit in the original. The last place is the end. */
interface Plain {
  readonly text: string
  readonly at: ReadonlyArray<number>
}

const isSpace = (unit: number): boolean => unit === 32 || unit === 9

/** A character with its marks. Hangul is composed of letters, too. */
const clusters = /[\u1100-\u11ff]+|[^\u1100-\u11ff\p{M}]\p{M}*|\p{M}/gsu

const toPlain = (text: string): Plain => {
  const parts: Array<string> = []
  const at: Array<number> = []
  /** Spaces wait for the next character: at the end of a line they are dropped. */
  let spaces: Array<readonly [string, number]> = []
  const push = (part: string, place: number): void => {
    parts.push(part)
    for (let index = 0; index < part.length; index++) at.push(place)
  }
  for (const { 0: cluster, index } of text.matchAll(clusters)) {
    const first = typed(cluster.charCodeAt(0))
    const part = cluster === "…" ? "..." : cluster.length === 1 ? String.fromCharCode(first) : cluster.normalize("NFC")
    if (cluster.length === 1 && isSpace(first)) {
      spaces.push([part, index])
      continue
    }
    if (part !== "\n" && part !== "\r") for (const [space, place] of spaces) push(space, place)
    spaces = []
    push(part, index)
  }
  at.push(text.length)
  return { text: parts.join(""), at }
}

/** The plain index at which an original place begins; `undefined` if the place is inside of a character. */
const indexAt = ({ at }: Plain, place: number): number | undefined => {
  const index = at.indexOf(place)
  return index === -1 ? undefined : index
}

const commonStart = (left: string, right: string): number => {
  let length = 0
  while (length < left.length && length < right.length && left[length] === right[length]) length++
  return length
}

const commonEnd = (left: string, right: string, most: number): number => {
  let length = 0
  while (length < most && left.at(-1 - length) === right.at(-1 - length)) length++
  return length
}

/** A part of a file, and the text for its place. */
export interface Change {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** The longest file that is searched this way, in UTF-16 units. */
const most = 200_000

/** The least plain text that may be found this way. Less fits by accident. */
const least = 4

/**
 * Finds the one place of `old`, and the change that makes it `next`. Common beginnings and ends stay as they are in the
 * file.
 */
export const findTolerantly = (file: string, old: string, next: string): Change | undefined => {
  if (file.length > most || old.length > most) return undefined
  const wanted = toPlain(old)
  if (wanted.text.trim().length < least) return undefined
  const plain = toPlain(file)
  const places: Array<number> = []
  forEachOccurrence(plain.text, wanted.text, { overlapping: true }, (place) => {
    places.push(place)
    return places.length < 2
  })
  const [place] = places
  if (place === undefined || places.length > 1) return undefined
  const end = place + wanted.text.length
  // A place inside a character of the file doesn't count.
  const isInside = (index: number): boolean => index > 0 && plain.at[index] === plain.at[index - 1]
  if (isInside(place) || isInside(end)) return undefined
  const start = commonStart(old, next)
  const tail = commonEnd(old, next, Math.min(old.length, next.length) - start)
  const head = indexAt(wanted, start)
  const foot = tail === 0 ? wanted.text.length : indexAt(wanted, old.length - tail)
  const [kept, skipped] = head === undefined ? [0, 0] : [start, head]
  const [left, last] = foot === undefined ? [0, wanted.text.length] : [tail, foot]
  return {
    from: plain.at[place + skipped] ?? 0,
    to: plain.at[place + last] ?? file.length,
    text: next.slice(kept, next.length - left)
  }
}
