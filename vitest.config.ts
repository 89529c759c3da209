import { existsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

// Type tests are plain modules, `test/**/*.types.ts`, checked by `npm run typecheck` and never run: vitest's own
// typecheck mode drives tsc by parsing its output. They assert with `expectTypeOf` from vitest or `@ts-expect-error`.
// "module" is for bundlers: what packages put there (AWS's, for one), node can't load.
const conditions = ["@effect-deepagents/source", ...defaultServerConditions.filter((name) => name !== "module")]
const results = process.env["VITEST_RESULTS"]

/** The files that take longest, longest first: they must not be what the last worker is left with. */
const slow = [
  "durable/chaos",
  "page/live",
  "page/page",
  "durable/cluster",
  "cli/chat",
  "cli/program",
  "cli/terminal",
  "cli/serve",
  "cli/workflow",
  "cli/extensions",
  "documents/memory",
  "web/Browser.hostile",
  "web/Browser",
  "cli/unapproved",
  "workspace/git/Worktrees",
  "workspace/git/hostile",
  "sessions/corpus",
  "backends/conformance.sandbox",
  "backends/conformance",
  "sessions/processes",
  "backends/bash/Bash",
  "backends/isolate/injected",
  "backends/local/LocalShell",
  "backends/local/search",
  "backends/CustomSandbox",
  "backends/CustomSandbox.remote",
  "backends/processes/Processes",
  "sessions/checkpoints/property",
  "sessions/conformance",
  "sessions/copying",
  "sessions/servers",
  "server/cluster",
  "acp/AcpAgent",
  "cli/growth",
  "cli/permissions",
  "fuzz/growth",
  "models/hostile/hostile",
  "models/llama/LlamaChatModel",
  "stores/processes"
]

for (const name of slow) {
  if (!existsSync(`${import.meta.dirname}/test/${name}.test.ts`)) throw new Error(`there is no test file ${name}`)
}

class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = slow.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return at === -1 ? slow.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    environment: "node",
    include: ["test/**/*.test.ts", "scripts/new/*.test.ts"],
    exclude: ["test/bench/**"],
    globalSetup: ["test/announce.ts"],
    setupFiles: ["test/seed.ts"],
    // Loading Effect and the sources is most of what a small file costs: files of a worker share what it has loaded.
    // Nothing in src/ is a singleton, so no file can see another's traces.
    isolate: false,
    // Many files wait for processes and servers of theirs, so that two processors have work for three workers.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    sequence: { sequencer: SlowFirst },
    // Node keeps what it compiled for the processes that tests start: each takes half of its time to load Effect.
    env: { NODE_COMPILE_CACHE: `${import.meta.dirname}/node_modules/.cache/node` },
    // A busy machine is slower by a factor; a hang is found as well after a minute.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // .ci/run counts the tests from this file.
    reporters: results ? ["default", ["json", { outputFile: results }]] : ["default"]
  }
})
