/**
 * Compares the tables of docs/architecture.md with what is there: the folders of src/ with their rings and import paths,
 * the rings and rules of .dependency-cruiser.mjs, and the modules of support and core.
 */
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname } from "node:path"
import manifest from "../package.json" with { type: "json" }

const { default: cruiser }: { readonly default: { readonly forbidden: ReadonlyArray<{ readonly name: string }> } } =
  await import(new URL("../.dependency-cruiser.mjs", import.meta.url).href)

const page = readFileSync("docs/architecture.md", "utf8")

const cells = (name: string): ReadonlyArray<ReadonlyArray<string>> =>
  (page.split(`<!-- ${name}:start -->`)[1]?.split(`<!-- ${name}:end -->`)[0] ?? "")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim())
    )

const rows = (name: string) => cells(name).map((row) => row.map((cell) => cell.replaceAll("`", "")))

const sorted = (values: Iterable<string>) => [...new Set(values)].toSorted((left, right) => left.localeCompare(right))

/** Import path → folder, as package.json exports it; the barrel stands for the core. */
const doors = Object.entries(manifest.exports).flatMap(([path, target]) => {
  if (target === null || typeof target === "string" || path.includes("*")) return []
  const folder = dirname(target["@effect-deepagents/source"]).replace(/^\.\//, "")
  return [[`${manifest.name}${path.slice(1)}`, folder === "src" ? "src/core" : folder] as const]
})

const folders = readdirSync("src", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => `src/${entry.name}`)

const listed = rows("folders").map(([folder = "", ring = "", path = ""]) => ({ folder, ring, path }))
const rings = rows("rings").map(([, names = ""]) => names.split(", "))
const enforced = cruiser.forbidden
  .map((rule) => rule.name)
  .filter((name) => name.startsWith("inward-only-"))
  .map((name) => name.slice("inward-only-".length))

assert.deepEqual(
  sorted(listed.map((row) => row.folder)),
  sorted([...folders, ...doors.map(([, folder]) => folder)]),
  "docs/architecture.md lists other folders than src/ has"
)
assert.deepEqual(
  Object.fromEntries(listed.flatMap((row) => (row.path === "" ? [] : [[row.path, row.folder]]))),
  Object.fromEntries(doors),
  "docs/architecture.md names other import paths than package.json exports"
)
assert.deepEqual(rings.flat(), enforced, "docs/architecture.md names other rings than .dependency-cruiser.mjs")
for (const { folder, ring } of listed) {
  assert.ok(rings[Number(ring)]?.includes(folder.split("/")[1] ?? ""), `${folder} is not on ring ${ring}`)
}

const columns = { rules: 0, support: 0, core: 1, "core/loop": 0, "core/internal": 0 }
const named = (table: keyof typeof columns): ReadonlyArray<string> =>
  sorted(
    cells(table).flatMap((row) => [...(row[columns[table]] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name))
  )
const modules = (folder: string): ReadonlyArray<string> =>
  sorted(readdirSync(`src/${folder}`).flatMap((file) => (file.endsWith(".ts") ? [basename(file, ".ts")] : [])))

assert.deepEqual(
  named("rules"),
  sorted(cruiser.forbidden.map(({ name }) => name.replace(/^inward-only-.*/, "inward-only-<folder>"))),
  "docs/architecture.md lists other rules than .dependency-cruiser.mjs"
)
for (const folder of ["support", "core", "core/loop", "core/internal"] as const) {
  assert.deepEqual(named(folder), modules(folder), `docs/architecture.md lists other modules than src/${folder} has`)
}
console.log(`architecture: ${listed.length} folders on ${rings.length} rings, as docs/architecture.md says`)
