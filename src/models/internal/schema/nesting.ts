/** JSON that is nested so deep that whoever walks over it runs out of stack. Parsers take it, writers do not. */

/** Levels that a value of a server or a model may have. Nobody means a hundredth of it. */
export const deepest = 1_000

/** Reports whether a value has more levels than that. It goes no deeper itself, and so does not run out of stack. */
export const isTooDeep = (value: unknown): boolean => isDeeper(value, deepest)

/** Every event of every stream comes by here: nothing is made on the way. */
const isDeeper = (value: unknown, levelsLeft: number): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (levelsLeft === 0) return true
  if (Array.isArray(value)) {
    for (const inner of value) if (isDeeper(inner, levelsLeft - 1)) return true
    return false
  }
  for (const key in value) if (isDeeper(value[key as keyof typeof value], levelsLeft - 1)) return true
  return false
}

/** The problem of an event that is nested too deep. */
export const tooDeep = `an event of the stream is nested deeper than ${deepest} levels`
