/** Programs that tests start as processes. From its sources each would load Effect anew, which takes four times as long. */
import { existsSync, mkdtempSync, renameSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { buildSync } from "esbuild"
import { inject } from "vitest"

/**
 * The path of a program as one file, made once for a run of tests. Two workers may make it at the same time: the file of
 * the first one to end is used. A program that starts threads needs its sources, and can't be bundled.
 */
export const bundle = (source: URL): string => {
  const folder = inject("sharedFolder")
  const path = fileURLToPath(source)
  const file = join(
    folder,
    relative(import.meta.dirname, path)
      .replaceAll(/[^\w-]/g, "-")
      .concat(".mjs")
  )
  if (existsSync(file)) return file
  const outfile = join(mkdtempSync(join(folder, "bundle-")), "program.mjs")
  buildSync({
    entryPoints: [path],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    conditions: ["@effect-deepagents/source"],
    external: ["node-llama-cpp", "pg-native"],
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module"\nconst require = makeRequire(import.meta.url)'
    },
    logLevel: "error"
  })
  renameSync(outfile, file)
  return file
}
