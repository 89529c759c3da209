/** How much of a property test runs: all of it with `TEST_SCALE=full`, a quarter (and at least one) by default. */
export const scaled = (full: number): number =>
  process.env["TEST_SCALE"] === "full" ? full : Math.max(1, Math.ceil(full / 4))
