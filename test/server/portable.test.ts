/** The mappers of protocols are for routes anywhere: their module needs nothing of Node. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"

it.live("a worker or a page can have AiSdk, AgUi, OpenAi, LangGraph and A2A in its bundle", () =>
  Effect.gen(function* () {
    const { errors, outputFiles } = yield* Effect.promise(() =>
      build({
        stdin: {
          contents: `export { A2A, AgUi, AiSdk, LangGraph, OpenAi } from "effect-deepagents/server"`,
          resolveDir: import.meta.dirname
        },
        bundle: true,
        write: false,
        platform: "browser",
        format: "esm",
        conditions: ["@effect-deepagents/source"],
        logLevel: "silent"
      })
    )
    assert.deepStrictEqual(errors, [])
    assert.lengthOf(outputFiles, 1)
  })
)
