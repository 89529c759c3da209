/**
 * The code of `dist/`: one file per import path and what they share in `dist/shared/`. Loading files is what an import
 * costs (near a millisecond each), so the modules of `src/` are not loaded one by one. The types are `tsc`'s.
 */
import { existsSync } from "node:fs"
import { defineConfig } from "rolldown"
import manifest from "./package.json" with { type: "json" }

const entries = Object.values(manifest.exports).flatMap((target) =>
  typeof target === "string" ? [] : [target["@effect-deepagents/source"]]
)

export default defineConfig({
  input: Object.fromEntries(
    entries.filter((file) => existsSync(file)).map((file) => [file.replace(/^[.][/]src[/]|[.]ts$/g, ""), file])
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
