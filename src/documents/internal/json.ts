/**
 * JSON read in place: values that nobody asks for are gone over, and never held, however many there are.
 *
 * A cursor breaks at what is no JSON: it is at its end then, and gives nothing more. Values that are gone over are not
 * checked beyond their brackets and quotes.
 */
import * as Option from "effect/Option"

export interface Cursor {
  /** Takes a sign (a bracket, a comma), if it is the next one. */
  readonly takes: (sign: string) => boolean
  /** The string that is next; breaks the cursor if there is none. */
  readonly string: () => string | undefined
  /** Tells whether a string is next. */
  readonly isString: () => boolean
  /** Goes over the value that is next. */
  readonly skip: () => void
  /** Goes into the object that is next; `work` takes the value of each key. */
  readonly object: (work: (key: string) => void) => void
  /** Goes into the array that is next; `work` takes each item. */
  readonly array: (work: () => void) => void
  readonly fail: () => void
  readonly isBroken: () => boolean
}

const parse = Option.liftThrowable((text: string): unknown => JSON.parse(text))

export const cursor = (text: string): Cursor => {
  let at = 0
  let isBroken = false
  const fail = () => {
    isBroken = true
    at = text.length
  }
  const next = (): string => {
    while (at < text.length && text.charCodeAt(at) <= 32) at++
    return text.charAt(at)
  }
  const takes = (sign: string): boolean => {
    if (next() !== sign) return false
    at++
    return true
  }
  /** The place behind a string that begins here; -1 if it does not end. */
  const behind = (start: number): number => {
    for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
      let before = quote
      while (text.charAt(before - 1) === "\\") before--
      if ((quote - before) % 2 === 0) return quote + 1
    }
    return -1
  }
  const string = (): string | undefined => {
    const start = next() === '"' ? at : -1
    const end = start === -1 ? -1 : behind(start)
    const value = end === -1 ? undefined : Option.getOrUndefined(parse(text.slice(start, end)))
    if (typeof value !== "string") {
      fail()
      return undefined
    }
    at = end
    return value
  }
  const skip = () => {
    next()
    const start = at
    for (let depth = 0; at < text.length; at++) {
      const sign = text.charAt(at)
      if (sign === '"') {
        const end = behind(at)
        if (end === -1) return fail()
        at = end - 1
      } else if (sign === "{" || sign === "[") depth++
      else if (depth === 0 && (sign === "," || sign === "}" || sign === "]")) break
      else if (sign === "}" || sign === "]") depth--
    }
    if (at === start || at >= text.length) fail()
  }
  const each = (open: string, close: string, work: () => void): void => {
    if (!takes(open)) return fail()
    if (takes(close)) return
    do work()
    while (!isBroken && takes(","))
    if (!isBroken && !takes(close)) fail()
  }
  return {
    takes,
    string,
    isString: () => next() === '"',
    skip,
    object: (work) =>
      each("{", "}", () => {
        const key = string()
        if (key === undefined || !takes(":")) fail()
        else work(key)
      }),
    array: (work) => each("[", "]", work),
    fail,
    isBroken: () => isBroken
  }
}
