/** Deterministic ids: `id-1`, `id-2` … in place of random ones. */
import * as Layer from "effect/Layer"
import { IdGenerator } from "../core/IdGenerator.ts"

/** Makes ids such as `<prefix>-1` for runs, for messages of the loop and of `TestChatModel`, and for calls without one. */
export const layer = (prefix: string = "id"): Layer.Layer<never> =>
  Layer.sync(IdGenerator, () => {
    let count = 0
    return () => `${prefix}-${++count}`
  })
