/**
 * JSON that is nested so deep that whoever walks over it runs out of stack. Parsers take it, writers do not.
 */

/** Levels that a value of a server or a model may have. Nobody means a hundredth of it. */
export const deepest = 1_000

/** Reports whether a value has more levels than that. It goes level by level, and so needs no stack itself. */
export const isTooDeep = (value: unknown): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return true
    const below: Array<unknown> = []
    for (const one of level) {
      if (typeof one !== "object" || one === null) continue
      for (const inner of Object.values(one)) if (typeof inner === "object" && inner !== null) below.push(inner)
    }
    level = below
  }
  return false
}

/** The problem of an event that is nested too deep. */
export const tooDeep = `an event of the stream is nested deeper than ${deepest} levels`
