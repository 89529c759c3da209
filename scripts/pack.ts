/**
 * Packs the package as it is published: the build, the pages and the examples, with a manifest that has nothing of this
 * repository (scripts, development dependencies, the condition that leads to `src/`).
 *
 * `node scripts/pack.ts` leaves the folder in `.pack/`, and says what the tarball weighs.
 */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import manifest from "../package.json" with { type: "json" }

/** The limit of the tarball, in bytes. */
const limit = 4_500_000

const sourceCondition = "@effect-deepagents/source"

const exportsOf = (exports: object): object =>
  Object.fromEntries(
    Object.entries(exports).map(([path, target]: [string, unknown]) => {
      if (typeof target !== "object" || target === null) return [path, target]
      return [path, Object.fromEntries(Object.entries(target).filter(([condition]) => condition !== sourceCondition))]
    })
  )

/** Text of a page whose relative links lead to the repository: on npm, they would lead nowhere. */
export const withAbsoluteLinks = (text: string, repository: string): string =>
  text
    .replaceAll(/(!\[[^\]]*\]\()(?![a-z]+:|#)([^)]+)\)/g, `$1${repository}/raw/main/$2)`)
    .replaceAll(/((?<!!)\[[^\]]*\]\()(?![a-z]+:|#)([^)]+)\)/g, `$1${repository}/blob/main/$2)`)

/** The address of the repository, once `npm run release -- <address>` has filled it in. */
const repositoryOf = (given: object): string | undefined => {
  const { repository }: { readonly repository?: { readonly url: string } } = given
  return repository?.url.replace(/^git[+]|[.]git$/g, "")
}

/** Writes the published files into an empty folder. */
const writeFiles = (folder: string): void => {
  assert.ok(existsSync("dist/index.js"), "dist/ is missing: run `npm run build` first.")
  // Patterns that leave files out are for npm.
  const names = manifest.files.filter((name) => !name.startsWith("!"))
  for (const name of [...names, "README.md", "LICENSE"]) cpSync(name, join(folder, name), { recursive: true })
  const repository = repositoryOf(manifest)
  if (repository !== undefined) {
    writeFileSync(join(folder, "README.md"), withAbsoluteLinks(readFileSync("README.md", "utf8"), repository))
  }
  const { devDependencies: _dev, exports, scripts: _scripts, ...rest } = manifest
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...rest, exports: exportsOf(exports) }, null, 2))
}

/** Packs the files of a folder into another one. Returns the file of the tarball. */
const packFiles = (folder: string, destination: string): string => {
  const [packed] = JSON.parse(
    execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", destination], {
      cwd: folder,
      encoding: "utf8"
    })
  )
  assert.ok(packed.size <= limit, `The tarball has ${packed.size} bytes, and may have ${limit}.`)
  return join(destination, packed.filename)
}

/** Packs into a folder. Returns the file of the tarball. Several processes may pack at once. */
export const pack = (destination: string): string => {
  const folder = mkdtempSync(join(tmpdir(), "effect-deepagents-files-"))
  try {
    writeFiles(folder)
    return packFiles(folder, destination)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const published = resolve(".pack")
  rmSync(published, { recursive: true, force: true })
  mkdirSync(published)
  writeFiles(published)
  const file = packFiles(published, published)
  const files = execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).trim().split("\n").length
  console.log(`packed: ${files} files, ${statSync(file).size} bytes`)
  rmSync(file)
}
