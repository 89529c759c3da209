/** The pauses between attempts at what goes wrong again and again. */

const first = 250
const longest = 30_000

/** The pause after so many attempts in vain, in milliseconds: twice that of the one before. */
export const pauseAfter = (attempt: number): number => Math.min(longest, first * 2 ** (attempt - 1))

/** Tells whether what lasted so long went well: what ends at once, whenever it was made, is an attempt in vain. */
export const wentWell = (milliseconds: number): boolean => milliseconds >= longest
