/** Puts the stack of a deep agent together: its parts, and the user's own middleware. */
import * as Middleware from "../../core/Middleware.ts"

/** A middleware of any failures and needs: their types are put back where the agent's type is made. */
export type AnyMiddleware = Middleware.Middleware<unknown, unknown>

/** Reports whether names are the same but for case, `-`, `_`, and one letter more, less or other. */
const isNear = (left: string, right: string): boolean => {
  if (Middleware.names([left], right)) return true
  const [short, long] = left.length < right.length ? [left, right] : [right, left]
  let begin = 0
  while (begin < short.length && short[begin] === long[begin]) begin += 1
  const rest = long.length - begin - 1
  return rest <= 0 || (long.length - short.length < 2 && short.slice(short.length - rest) === long.slice(-rest))
}

/**
 * Base, then the user's own, then the tail. A middleware of the user's with the name of a part takes its place; so do
 * several of one name, in their order. One whose name is nearly a part's would stand beside it unnoticed, so an agent
 * with it is not run.
 */
export const stack = (
  base: ReadonlyArray<AnyMiddleware>,
  own: ReadonlyArray<AnyMiddleware>,
  tail: ReadonlyArray<AnyMiddleware>
): ReadonlyArray<AnyMiddleware> => {
  const parts = [...base, ...tail].map((one) => one.name)
  const replaced = (one: AnyMiddleware): ReadonlyArray<AnyMiddleware> => {
    const instead = own.filter(({ name }) => name === one.name)
    return instead.length === 0 ? [one] : instead
  }
  const added = own
    .filter(({ name }) => !parts.includes(name))
    .map((one) => {
      const near = parts.find((part) => isNear(part.toLowerCase(), one.name.toLowerCase()))
      if (near === undefined) return one
      const problem = `the middleware "${one.name}" is named almost like the part "${near}" of the deep agent; name it "${near}" to take its place, or give it a name of its own`
      return { ...one, check: () => problem }
    })
  return [...base.flatMap(replaced), ...added, ...tail.flatMap(replaced)]
}
