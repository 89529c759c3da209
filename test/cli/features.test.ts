/** `/features`: the optional parts of the program, and where each is set. */
import { assert, describe, it } from "@effect/vitest"
import type { Settings } from "../../src/cli/internal/config/settings.ts"
import { featuresOf } from "../../src/cli/internal/work/inChat/setup.ts"

const linesOf = (settings: Settings) =>
  featuresOf({ settings, extensions: { loaded: [], problems: [] } })
    .split("\n")
    .filter((line) => line.startsWith("- "))

describe("/features", () => {
  it("tells the default of each unset part", () => {
    assert.deepStrictEqual(linesOf({}), [
      "- **scripts** off — default",
      "- **sandbox** off — default",
      "- **lsp** on: language servers for diagnostics — default",
      "- **fallback** off — default",
      "- **plugins** off — default",
      "- **vim** off — default",
      "- **extensions** off — `deepagents extensions`"
    ])
  })

  it("tells the place of each setting, also of one that is off", () => {
    const user = { from: "user", where: "~/config.json" } as const
    const lines = linesOf({
      scripts: { value: "review", from: "project", where: ".deepagents/config.json" },
      sandbox: { value: "os", from: "flag", where: "--sandbox" },
      lsp: { value: false, ...user },
      // The favourites answer where no fallback is set.
      favourites: { value: ["ollama:a", "ollama:b"], ...user },
      vim: { value: true, ...user }
    })
    assert.deepStrictEqual(lines.slice(0, 6), [
      "- **scripts** on: you approve each — project (.deepagents/config.json)",
      "- **sandbox** on: sandboxed, no network — flag (--sandbox)",
      "- **lsp** off: language servers for diagnostics — user (~/config.json)",
      "- **fallback** on: ollama:a, ollama:b — user (~/config.json)",
      "- **plugins** off — default",
      "- **vim** on — user (~/config.json)"
    ])
  })
})
