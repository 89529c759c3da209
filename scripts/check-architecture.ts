/**
 * Compares the tables of docs/architecture.md with what is there: the folders of src/ with their rings, import paths and
 * budgets, the rings and rules of .dependency-cruiser.mjs, and the modules of core.
 */
import assert from "node:assert/strict"
import { globSync, readdirSync, readFileSync } from "node:fs"
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
  // A room of a folder may have a door of its own: `testing/conformance`.
  if (folder.split("/").length > 2) return []
  return [[`${manifest.name}${path.slice(1)}`, folder === "src" ? "src/core" : folder] as const]
})

const folders = readdirSync("src", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => `src/${entry.name}`)

const toNumber = (cell: string | undefined) => Number((cell ?? "").replaceAll(",", ""))

const listed = rows("folders").map(([folder = "", ring = "", path = "", lines, names]) => ({
  folder,
  ring,
  path,
  lines: toNumber(lines),
  names: toNumber(names)
}))
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

const columns = { rules: 0, core: 1, "core/loop": 0, "core/schema": 0, "core/thread": 0 }
const named = (table: keyof typeof columns): ReadonlyArray<string> =>
  sorted(
    cells(table).flatMap((row) => [...(row[columns[table]] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name))
  )
const modules = (folder: string): ReadonlyArray<string> =>
  sorted(globSync(`src/${folder}/${folder === "core" ? "*.ts" : "**/*.ts"}`).map((file) => basename(file, ".ts")))

assert.deepEqual(
  named("rules"),
  sorted(cruiser.forbidden.map(({ name }) => name.replace(/^inward-only-.*/, "inward-only-<folder>"))),
  "docs/architecture.md lists other rules than .dependency-cruiser.mjs"
)
for (const folder of ["core", "core/loop", "core/schema", "core/thread"] as const) {
  assert.deepEqual(named(folder), modules(folder), `docs/architecture.md lists other modules than src/${folder} has`)
}
assert.deepEqual(
  sorted(rows("support").map(([folder = ""]) => folder)),
  sorted(readdirSync("src/support")),
  "docs/architecture.md lists other folders than src/support has"
)

/** Shapes are written by `npm run options`: nobody reads their lines. */
const isGenerated = (file: string) => file.endsWith("/shapes.ts")

const sources = globSync("src/**/*.ts").map((file) => {
  const text = readFileSync(file, "utf8")
  return { file, text, lines: isGenerated(file) ? 0 : text.split("\n").length - 1 }
})
const isPublic = (file: string) => /\/[A-Z]\w*[.]ts$/.test(file) && !/\/(internal|loop)\//.test(file)

const declared = /^export (?:declare )?(?:const|function|class|interface|type) (\w+)/gm
const reexported = /^export (?:type )?\{([^}]*)\}/gm

/** The names that a module exports. A type and a value of one name are one. */
const exportsOf = (text: string) =>
  new Set([
    ...[...text.matchAll(declared)].map(([, name = ""]) => name),
    ...[...text.matchAll(reexported)].flatMap(([, list = ""]) =>
      list.split(",").flatMap((part) => part.trim().match(/\w+$/) ?? [])
    )
  ])

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, number) => total + number, 0)
const linesOf = (folder: string) => sum(sources.flatMap(({ file, lines }) => (file.startsWith(folder) ? [lines] : [])))
const namesOf = (folder: string) =>
  sum(sources.flatMap(({ file, text }) => (file.startsWith(folder) && isPublic(file) ? [exportsOf(text).size] : [])))

/** What is over its budget, as sentences. */
const excess: Array<string> = []
const hold = (what: string, is: number, most: number | undefined) => {
  assert.ok(most !== undefined && Number.isInteger(most), `docs/architecture.md has no budget for ${what}`)
  if (is > most) excess.push(`${what}: ${is}, and the budget is ${most}`)
}

for (const { folder, lines, names } of listed) {
  hold(`lines of ${folder}`, linesOf(`${folder}/`), lines)
  hold(`public names of ${folder}`, namesOf(`${folder}/`), names)
}

const limits = new Map(rows("limits").map(([what = "", most]) => [what, toNumber(most)]))
hold("lines of src", linesOf("src/"), limits.get("lines of src"))
hold("public names", namesOf("src/"), limits.get("public names"))
hold("public modules", sources.filter(({ file }) => isPublic(file)).length, limits.get("public modules"))
for (const { file, lines } of sources) hold(`lines of ${file}`, lines, limits.get("lines of a file"))
for (const folder of new Set(sources.map(({ file }) => dirname(file)))) {
  // A module of a public folder is an import path.
  const limit = /[/](internal|loop)\b/.test(folder) ? "children of an internal folder" : "children of a public folder"
  hold(`children of ${folder}`, readdirSync(folder).length, limits.get(limit))
}
const exceptions = sources.flatMap(({ file, text }) =>
  [...text.matchAll(/oxlint-disable\S* eslint\/(?:complexity|max-lines-per-function)(.*)$/gm)].map(
    ([, reason = ""]) => ({ file, isNamed: reason.startsWith(" -- ") })
  )
)
for (const { file, isNamed } of exceptions)
  if (!isNamed) excess.push(`${file} names no reason for an exception in size`)
hold("exceptions in size", exceptions.length, limits.get("exceptions in size"))
assert.deepEqual(
  excess,
  [],
  "src/ is over a budget of docs/architecture.md: delete elsewhere, or say there why it needs more"
)
console.log(`architecture: ${listed.length} folders on ${rings.length} rings, as docs/architecture.md says`)
