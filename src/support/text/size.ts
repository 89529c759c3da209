/** Bounds of what is stored at once, in bytes of JSON. */
import * as Predicate from "effect/Predicate"

/** The most bytes of an entry, in every store: the client of Postgres can't read rows of more than 16 MiB. */
export const limit = 15 * 1024 * 1024

/** The most bytes of a row that Postgres' client can read. Earlier versions may have written larger ones. */
export const readable = 16 * 1024 * 1024 - 64 * 1024

/** The bound of all entries of one append together: Postgres takes a quarter of a gigabyte as one argument. */
export const batchLimit = 8 * limit

/** No character has more bytes in JSON: one that must be escaped. */
const widest = 6

/** A number, a literal; what stands between two values. */
const plain = 32

const encoder = new TextEncoder()

/** Adds up a value by its texts and by all that is in it, without going through the texts. */
const weigh = (value: unknown, character: number, item: number): number => {
  const left = [value]
  let bytes = 0
  while (left.length > 0) {
    const one = left.pop()
    bytes += item
    if (typeof one === "string") bytes += character * one.length
    else if (Array.isArray(one)) for (const part of one) left.push(part)
    else if (Predicate.isObject(one)) {
      // What has no parts is counted where it stands, and no list of keys is made: this is done for each entry.
      for (const key in one) {
        const part = one[key]
        bytes += character * key.length + item
        if (typeof part === "string") bytes += item + character * part.length
        else if (typeof part === "object") left.push(part)
        else bytes += item
      }
    }
  }
  return bytes
}

/** At least as much as a value has in bytes. */
export const boundOf = (value: unknown): number => weigh(value, widest, plain)

/** At most as much as a value has in bytes. */
export const leastOf = (value: unknown): number => weigh(value, 1, 0)

const exactSizeOf = (value: unknown): number => encoder.encode(JSON.stringify(value)).length

/** The bytes of a JSON value; or at least as many where these are few enough, and at most where they are far too many. */
export const sizeOf = (value: unknown, few: number = limit): number => {
  const bound = boundOf(value)
  if (bound <= few) return bound
  const least = leastOf(value)
  return least > 2 * few ? least : exactSizeOf(value)
}

/** The bytes of a text, or at least as many where these are few enough. */
export const sizeOfText = (text: string): number =>
  3 * text.length <= limit ? 3 * text.length : encoder.encode(text).length
