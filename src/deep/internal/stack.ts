import type { Middleware } from "../../core/Middleware.ts"

/** A middleware of whatever failures and needs: what they were is put back where the agent's type is made. */
export type AnyMiddleware = Middleware<unknown, unknown>

/**
 * Puts a stack together: base, then the user's own, then the tail. One of the user's that has the name of one of ours
 * takes its place; so do several of one name, in their order.
 */
export const stack = (
  base: ReadonlyArray<AnyMiddleware>,
  own: ReadonlyArray<AnyMiddleware>,
  tail: ReadonlyArray<AnyMiddleware>
): ReadonlyArray<AnyMiddleware> => {
  const ours = new Set([...base, ...tail].map((one) => one.name))
  const replaced = (one: AnyMiddleware): ReadonlyArray<AnyMiddleware> => {
    const instead = own.filter(({ name }) => name === one.name)
    return instead.length === 0 ? [one] : instead
  }
  return [...base.flatMap(replaced), ...own.filter((one) => !ours.has(one.name)), ...tail.flatMap(replaced)]
}
