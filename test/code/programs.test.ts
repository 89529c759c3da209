/** Generated programs reach nothing of their host, and each of them ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, ManagedRuntime, Result } from "effect"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { program } from "./programs.ts"
import { run, type Seen } from "./scripts.ts"

/** For long runs by hand: `CODE_PROGRAMS=100000 npx vitest run test/code/programs.test.ts`. */
const numRuns = Number(process.env["CODE_PROGRAMS"] ?? scaled(2_000))

describe("generated programs", () => {
  it("parse, end, and reach nothing but their tools", async () => {
    const runtime = ManagedRuntime.make(NodeScripts.layer())
    const one = async (source: string) => {
      const noted: Seen = { calls: [], lines: [] }
      const result = await runtime.runPromise(
        Effect.result(run(source, { limits: { time: 300, calls: 50 }, seen: noted }))
      )
      const said = JSON.stringify([Result.isSuccess(result) ? result.success : result.failure.message, noted.lines])
      assert.notMatch(said, /execPath|"PATH"|\[object process\]/)
      // A function as a key is its text.
      assert.isEmpty(noted.calls.filter((name) => /[(){};]/.test(name) && !/=>|^(?:async |function|class)/.test(name)))
      if (Result.isFailure(result)) assert.notStrictEqual(result.failure.reason, "Syntax", result.failure.message)
    }
    await fc.assert(fc.asyncProperty(program, one), { numRuns })
    await runtime.dispose()
  }, 3_600_000)
})
