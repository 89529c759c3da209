/**
 * Reads JSON in place. Skipped values take no memory.
 *
 * A cursor fails at a syntax error: it moves to the end and reads nothing more. In skipped values it checks brackets and
 * quotes only.
 */
import * as Option from "effect/Option"

export interface Cursor {
  /** Consumes a bracket, comma or colon if it is next. */
  readonly takes: (sign: string) => boolean
  /** Reads a string. Fails if none is next. */
  readonly string: () => string | undefined
  /** Returns true if a string is next. */
  readonly isString: () => boolean
  /** Skips the next value. */
  readonly skip: () => void
  /** Reads an object. `work` consumes the value of each key. */
  readonly object: (work: (key: string) => void) => void
  /** Reads an array. `work` consumes each item. */
  readonly array: (work: () => void) => void
  readonly fail: () => void
  readonly isBroken: () => boolean
}

const parse = Option.liftThrowable((text: string): unknown => JSON.parse(text))

export const makeCursor = (text: string): Cursor => {
  let at = 0
  let isBroken = false
  const fail = () => {
    isBroken = true
    at = text.length
  }
  const peek = (): string => {
    while (at < text.length && text.charCodeAt(at) <= 32) at++
    return text.charAt(at)
  }
  const takes = (sign: string): boolean => {
    if (peek() !== sign) return false
    at++
    return true
  }
  /** Finds the end of the string that begins at `start`, or -1. */
  const findEnd = (start: number): number => {
    for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
      let before = quote
      while (text.charAt(before - 1) === "\\") before--
      if ((quote - before) % 2 === 0) return quote + 1
    }
    return -1
  }
  const readString = (): string | undefined => {
    const start = peek() === '"' ? at : -1
    const end = start === -1 ? -1 : findEnd(start)
    const value = end === -1 ? undefined : Option.getOrUndefined(parse(text.slice(start, end)))
    if (typeof value !== "string") {
      fail()
      return undefined
    }
    at = end
    return value
  }
  const skip = () => {
    peek()
    const start = at
    for (let depth = 0; at < text.length; at++) {
      const sign = text.charAt(at)
      if (sign === '"') {
        const end = findEnd(at)
        if (end === -1) return fail()
        at = end - 1
      } else if (sign === "{" || sign === "[") depth++
      else if (depth === 0 && (sign === "," || sign === "}" || sign === "]")) break
      else if (sign === "}" || sign === "]") depth--
    }
    if (at === start || at >= text.length) fail()
  }
  const readItems = (open: string, close: string, work: () => void): void => {
    if (!takes(open)) return fail()
    if (takes(close)) return
    do work()
    while (!isBroken && takes(","))
    if (!isBroken && !takes(close)) fail()
  }
  return {
    takes,
    string: readString,
    isString: () => peek() === '"',
    skip,
    object: (work) =>
      readItems("{", "}", () => {
        const key = readString()
        if (key === undefined || !takes(":")) fail()
        else work(key)
      }),
    array: (work) => readItems("[", "]", work),
    fail,
    isBroken: () => isBroken
  }
}
