/** Promises that are handed to code that is not ours. */

/**
 * A promise that ends nothing if nobody waits for it any more. Foreign code may drop what it was given, and a promise
 * that is rejected while nobody looks ends the process.
 */
export const observed = <A>(promise: Promise<A>): Promise<A> => {
  promise.catch(() => undefined)
  return promise
}
