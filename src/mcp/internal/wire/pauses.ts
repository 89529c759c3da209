/** The pauses between repeated attempts that fail. */

const first = 250
const longest = 30_000

/** The pause after so many attempts in vain, in milliseconds: twice that of the one before. */
export const pauseAfter = (attempt: number): number => Math.min(longest, first * 2 ** (attempt - 1))

/** Reports whether an attempt of this duration went well: an attempt that ends immediately has failed. */
export const wentWell = (milliseconds: number): boolean => milliseconds >= longest
