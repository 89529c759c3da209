/** Deterministic ids: `id-1`, `id-2` … in place of random ones. */
import * as Layer from "effect/Layer"
import { IdGenerator } from "../core/IdGenerator.ts"

/**
 * Counts the ids of runs, of messages that the loop or a `TestChatModel` makes, and of calls that came without one, as
 * `<prefix>-1`, `<prefix>-2` … A message that the test makes itself has the id that the test gives it, or a random one.
 */
export const layer = (prefix: string = "id"): Layer.Layer<never> =>
  Layer.sync(IdGenerator, () => {
    let count = 0
    return () => `${prefix}-${++count}`
  })
