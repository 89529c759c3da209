/** Said once, before all tests. */
import { hasRedis, howToInstall } from "./servers/redis.ts"

export default () => {
  if (hasRedis) return
  if (process.env["TEST_SCALE"] === "full") throw new Error(howToInstall)
  process.stdout.write(`${howToInstall} They are left out now.\n`)
}
