/** Promises for foreign code. */

/** Marks a promise as handled. Foreign code may drop it, and an unhandled rejection would end the process. */
export const observed = <A>(promise: Promise<A>): Promise<A> => {
  promise.catch(() => undefined)
  return promise
}
