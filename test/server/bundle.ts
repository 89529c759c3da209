/** A program of a test as one file: it starts much faster than from its sources. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { build } from "esbuild"

/** Bundles a module into a file of its own. */
export const bundle = (entry: URL): Effect.Effect<string> =>
  Effect.promise(async () => {
    const outfile = join(mkdtempSync(join(tmpdir(), "bundle-")), "program.mjs")
    await build({
      entryPoints: [entry.pathname],
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node22",
      conditions: ["@effect-deepagents/source"],
      banner: {
        js: 'import { createRequire as makeRequire } from "node:module"\nconst require = makeRequire(import.meta.url)'
      },
      logLevel: "error"
    })
    return outfile
  })
