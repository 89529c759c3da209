/** The memory that ended runs leave. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"

const flags = [
  "--conditions=@effect-deepagents/source",
  "--expose-gc",
  // These two would decide by chance: objects that V8 makes old from the start, and the progress of other threads.
  "--no-allocation-site-pretenuring",
  "--single-threaded"
]

describe("garbage", () => {
  it.effect.each(["plain", "deep"])(
    "a %s run that is over is collected young: nothing old leads to what it said",
    (kind) =>
      Effect.gen(function* () {
        const child = fileURLToPath(new URL("garbage.child.mjs", import.meta.url))
        const printed = yield* Effect.callback<string, Error>((resume) => {
          execFile(process.execPath, [...flags, child, kind], (error, out) =>
            resume(error === null ? Effect.succeed(out) : Effect.fail(error))
          )
        })
        // A round's messages alone are 1,000 bytes.
        assert.isBelow(Number(printed), 400)
      })
  )
})
