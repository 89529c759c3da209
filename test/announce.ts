import { isFull } from "./scale.ts"

/** Says once, before the tests, how much of them runs. */
export const setup = (): void => {
  const what = isFull ? "all of them" : "a quarter; TEST_SCALE=full runs all of them"
  process.stdout.write(`Properties, and conformance suites that start processes: ${what}.\n`)
}
