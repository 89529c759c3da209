/**
 * The code of `dist/`: one file per import path and what they share in `dist/shared/`. Loading files is what an import
 * costs (near a millisecond each), so the modules of `src/` are not loaded one by one. The types are `tsc`'s.
 */
import { existsSync } from "node:fs"
import { defineConfig, RolldownMagicString } from "rolldown"
import manifest from "./package.json" with { type: "json" }

const entries = Object.values(manifest.exports).flatMap((target) =>
  typeof target === "string" ? [] : [target["@effect-deepagents/source"]]
)

/**
 * An SDK that is not installed must not break the bundle of a user who does not use it: esbuild and webpack take an
 * import inside of a `try` for one that may be missing. One that is installed is bundled as any other.
 */
const optionalPeers = {
  name: "optional-peers",
  transform: (code) => {
    const changed = new RolldownMagicString(code).replaceAll(
      /\(\) => (import\("[^"./][^"]*"\))/g,
      "async () => { try { return await $1 } catch (cause) { throw cause } }"
    )
    return changed.hasChanged() ? { code: changed.toString(), map: changed.generateMap().toString() } : undefined
  }
}

/** A program that a module starts, beside it: `Bash` runs commands in a process of its own. */
const program = "./src/backends/bash/child.ts"

const programs = {
  name: "programs",
  transform: (code) => {
    const changed = new RolldownMagicString(code).replace('new URL("./child.ts"', 'new URL("./child.js"')
    return changed.hasChanged() ? { code: changed.toString(), map: changed.generateMap().toString() } : undefined
  }
}

export default defineConfig({
  plugins: [optionalPeers, programs],
  input: Object.fromEntries(
    [...entries, program]
      .filter((file) => existsSync(file))
      .map((file) => [file.replace(/^[.][/]src[/]|[.]ts$/g, ""), file])
  ),
  // Whatever is imported by name is a dependency.
  external: /^[^./]/,
  platform: "neutral",
  output: {
    dir: "dist",
    format: "esm",
    sourcemap: true,
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
    codeSplitting: { groups: [{ name: "core", test: /\/src\/core\// }] }
  },
  treeshake: { moduleSideEffects: false }
})
