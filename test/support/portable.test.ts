/** The modules that docs/edge.md names for workers and pages need nothing of Node. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"

const modules = ["", "/backends", "/deep", "/middleware", "/server", "/sessions", "/testing"]

describe("the bundle of a worker or a page", () => {
  it.live("has these modules whole", () =>
    Effect.gen(function* () {
      const imports = modules.map((module, index) => `import * as m${index} from "effect-deepagents${module}"`)
      const all = modules.map((_, index) => `m${index}`).join(", ")
      const { errors } = yield* Effect.promise(() =>
        build({
          stdin: { contents: `${imports.join("\n")}\nconsole.log(${all})`, resolveDir: import.meta.dirname },
          bundle: true,
          write: false,
          platform: "browser",
          format: "esm",
          conditions: ["@effect-deepagents/source"],
          logLevel: "silent"
        })
      )
      assert.deepStrictEqual(errors, [])
    })
  )
})
