/**
 * How much of the slow suites runs: all of it with `TEST_SCALE=full`, as in `.ci/run`, an eighth otherwise.
 */
export const isFull = process.env["TEST_SCALE"] === "full"

/** How often a property is tried: an eighth of `full`, and at least once. */
export const scaled = (full: number): number => (isFull ? full : Math.max(1, Math.ceil(full / 8)))

/** Every eighth of the checks of a slow suite, the same ones each time. */
export const sampled = <Check>(checks: ReadonlyArray<Check>): ReadonlyArray<Check> =>
  isFull ? checks : checks.filter((_, index) => index % 8 === 0)
