import { isFull } from "./scale.ts"
import { hasRedis, howToInstall } from "./servers/redis.ts"

/** Says once, before the tests, how much of them runs. */
export const setup = (): void => {
  const what = isFull ? "all of them" : "an eighth; TEST_SCALE=full runs all of them"
  process.stdout.write(`Properties, and conformance suites that start processes: ${what}.\n`)
  if (hasRedis) return
  if (isFull) throw new Error(howToInstall)
  process.stdout.write(`${howToInstall} They are left out now.\n`)
}
