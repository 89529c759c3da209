import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

// Type tests are plain modules, `test/**/*.types.ts`, checked by `npm run typecheck` and never run: vitest's own
// typecheck mode drives tsc by parsing its output. They assert with `expectTypeOf` from vitest or `@ts-expect-error`.
// "module" is for bundlers: what packages put there (AWS's, for one), node can't load.
const conditions = ["@effect-deepagents/source", ...defaultServerConditions.filter((name) => name !== "module")]
const results = process.env["VITEST_RESULTS"]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    environment: "node",
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**"],
    globalSetup: ["test/announce.ts"],
    // Loading Effect and the sources is most of what a small file costs: files of a worker share what it has loaded.
    // Nothing in src/ is a singleton, so no file can see another's traces.
    isolate: false,
    // A busy machine is slower by a factor; a hang is found as well after 20 seconds.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // .ci/run counts the tests from this file.
    reporters: results ? ["default", ["json", { outputFile: results }]] : ["default"]
  }
})
