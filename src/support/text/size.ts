/** Size limits of stored data, in bytes of JSON. */
import * as Predicate from "effect/Predicate"

/** The most bytes of an entry, in every store: the client of Postgres can't read rows of more than 16 MiB. */
export const limit = 15 * 1024 * 1024

/** The most bytes of a row that Postgres' client can read. Earlier versions may have written larger ones. */
export const readable = 16 * 1024 * 1024 - 64 * 1024

/** The limit of all entries of one append: Postgres accepts a quarter of a gigabyte as one argument. */
export const batchLimit = 8 * limit

/** The most bytes of a character in JSON: an escaped one. */
const widest = 6

/** The bytes of a number or a literal, with its separator. */
const plain = 32

const encoder = new TextEncoder()

/** Sums up the sizes of a value's texts and parts without scanning the texts. */
const weigh = (value: unknown, character: number, item: number): number => {
  const stack = [value]
  let bytes = 0
  while (stack.length > 0) {
    const one = stack.pop()
    bytes += item
    if (typeof one === "string") bytes += character * one.length
    else if (Array.isArray(one)) for (const part of one) stack.push(part)
    else if (Predicate.isObject(one)) {
      // Leaves are counted in place, and no list of keys is made: this runs for each entry.
      for (const key in one) {
        const part = one[key]
        bytes += character * key.length + item
        if (typeof part === "string") bytes += item + character * part.length
        else if (typeof part === "object") stack.push(part)
        else bytes += item
      }
    }
  }
  return bytes
}

/** An upper bound of a value's bytes. */
export const boundOf = (value: unknown): number => weigh(value, widest, plain)

/** A lower bound of a value's bytes. */
export const leastOf = (value: unknown): number => weigh(value, 1, 0)

const exactSizeOf = (value: unknown): number => encoder.encode(JSON.stringify(value)).length

/** The bytes of a JSON value: an upper bound if that is small enough, a lower bound if that is far too large. */
export const sizeOf = (value: unknown, few: number = limit): number => {
  const bound = boundOf(value)
  if (bound <= few) return bound
  const least = leastOf(value)
  return least > 2 * few ? least : exactSizeOf(value)
}

/** The bytes of a text, or an upper bound if that is small enough. */
export const sizeOfText = (text: string): number =>
  3 * text.length <= limit ? 3 * text.length : encoder.encode(text).length
