/**
 * Checks that every public export has a docstring; type-checks every ```ts
 * block of README.md and docs/ against the sources, and runs those that are marked ```ts run. Each block is a module of
 * its own; a block that is no TypeScript, or must not be checked, has another language tag (```text). Links between
 * pages must lead to a page, and to a heading of it.
 */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { codeBlocks } from "./markdown.ts"

const exported =
  /((?:\/\*\*(?:(?!\*\/)[^])*\*\/\n)?)^export (?:declare )?(?:const|function|class|interface|type) (\w+)/gm

/** Exports without a docstring. A type beside the value of its name has the value's. */
const undocumented = globSync("src/{*,models/bridges,models/local,testing/conformance}/[A-Z]*.ts").flatMap((file) => {
  const known = new Set<string>()
  return [...readFileSync(file, "utf8").matchAll(exported)].flatMap(([, doc = "", name = ""]) => {
    if (known.has(name)) return []
    known.add(name)
    return doc === "" ? [`${file}: ${name}`] : []
  })
})
if (undocumented.length > 0) {
  throw new Error(`These exports need a docstring:\n${undocumented.join("\n")}`)
}

const folder = ".docs-snippets"
const pages = [
  "README.md",
  "AGENTS.md",
  "SECURITY.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "examples/README.md",
  ...globSync("docs/**/*.md").sort()
]

rmSync(folder, { recursive: true, force: true })
let count = 0
const programs: Array<{ readonly file: string; readonly place: string }> = []
for (const page of pages) {
  for (const [index, block] of codeBlocks(readFileSync(page, "utf8")).entries()) {
    // Blank lines put the code on the line it has in the page, so that the compiler's line is the page's.
    const file = join(folder, page, `${index + 1}.ts`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, "\n".repeat(block.line - 1) + block.code)
    count++
    if (block.runs) programs.push({ file, place: `${page}:${block.line}` })
  }
}
if (count === 0) throw new Error("No ```ts block found: this check would check nothing.")

writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({
    extends: "../tsconfig.json",
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: ["**/*.ts"]
  })
)

// Pages that are as they were are not checked again.
const incremental = ["--incremental", "--tsBuildInfoFile", "node_modules/.cache/tsc/docs"]
const tsc = spawnSync("tsc", ["--pretty", "false", "-p", folder, ...incremental], { encoding: "utf8" })
if (tsc.error) throw tsc.error
if (tsc.status !== 0) {
  // ".docs-snippets/docs/tools.md/2.ts(31,7): error" is "docs/tools.md:31:7: error".
  console.error(tsc.stdout.replaceAll(/^\.docs-snippets\/(.+)\/\d+\.ts\((\d+),(\d+)\)/gm, "$1:$2:$3") + tsc.stderr)
  process.exit(1)
}

const env = { ...process.env, NODE_COMPILE_CACHE: resolve("node_modules/.cache/node") }
for (const { file, place } of programs) {
  const run = spawnSync(process.execPath, ["--conditions=@effect-deepagents/source", file], {
    encoding: "utf8",
    env,
    timeout: 60_000
  })
  if (run.status !== 0) {
    throw new Error(`${place} did not run (${run.signal ?? `exit ${run.status}`}):\n${run.stdout}${run.stderr}`)
  }
}

/** The id that a heading gets, as on GitHub. */
const anchor = (heading: string) =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-")

/** Text outside of code fences. */
const prose = (page: string) => readFileSync(page, "utf8").replaceAll(/^(`{3,}).*$[^]*?^\1$/gm, "")
const anchors = (page: string) =>
  new Set([...prose(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchor(heading)))

const dead = pages.flatMap((page) =>
  [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
    if (/^[a-z]+:/.test(link)) return []
    const [path = "", hash] = link.split("#")
    const target = path === "" ? page : join(dirname(page), path)
    const leads = existsSync(target) && (hash === undefined || !target.endsWith(".md") || anchors(target).has(hash))
    return leads ? [] : [`${page}: ${link}`]
  })
)
if (dead.length > 0) throw new Error(`These links lead nowhere:\n${dead.join("\n")}`)

/** Pages that an index must name, and examples. */
const listed = [
  { index: "docs/README.md", files: globSync("docs/*.md").filter((file) => file !== "docs/README.md") },
  { index: "llms.txt", files: globSync("docs/*.md").filter((file) => file !== "docs/README.md") },
  { index: "examples/README.md", files: globSync("examples/*.ts") }
].flatMap(({ files, index }) => {
  const text = readFileSync(index, "utf8")
  return files.filter((file) => !text.includes(`${basename(file)})`)).map((file) => `${index}: ${file}`)
})
if (listed.length > 0) throw new Error(`These indexes lack a file:\n${listed.join("\n")}`)

/** Rows of the tables of a page, from a heading to the next one, without their head. */
const rowsOf = (page: string, heading: string) => {
  const [, section = ""] = readFileSync(page, "utf8").split(`\n## ${heading}\n`)
  const rows = (section.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
  if (rows.length < 2) throw new Error(`${page} has no table under "${heading}"`)
  return rows.slice(1).filter((row) => !row.startsWith("| --"))
}
const testsOf = (row: string) => [...row.matchAll(/`(test\/[^`:]+)`/g)].map(([, file = ""]) => file)

/** Each guarantee on security has its test, and each invariant tests that say its number. */
const untested = [
  ...rowsOf("docs/security.md", "Guarantees").filter(
    (row) => testsOf(row).length === 0 || !testsOf(row).every(existsSync)
  ),
  ...rowsOf("docs/invariants.md", "Invariants and their tests").filter((row) => {
    const number = /^\| (\d+) /.exec(row)?.[1] ?? "?"
    const says = new RegExp(`invariants? [\\d, and]*\\b${number}\\b`)
    return (
      testsOf(row).length === 0 ||
      !testsOf(row).every((file) => existsSync(file) && says.test(readFileSync(file, "utf8")))
    )
  })
]
if (untested.length > 0)
  throw new Error(`These lines name a test that is not there, or is not theirs:\n${untested.join("\n")}`)

/** The texts of a table's first column in the page of errors, up to the heading of those that are not ours. */
const sources = globSync("src/**/*.ts")
  .map((file) => readFileSync(file, "utf8"))
  .join("\n")
const [ours = ""] = readFileSync("docs/troubleshooting.md", "utf8").split("## In the events")
const texts = [...ours.matchAll(/^\| `([^`]+)`/gm)].map(([, text = ""]) => text)
const unknown = texts.filter((text) => !sources.includes(text))
if (texts.length === 0 || unknown.length > 0) {
  throw new Error(`docs/troubleshooting.md has texts that no source has:\n${unknown.join("\n")}`)
}

/** The first program of the library is short. */
const quick = codeBlocks(readFileSync("README.md", "utf8")).find(({ heading }) => heading === "Quick start")
const quickLines =
  quick?.code.split("\n").filter((line) => !/^\s*(?:\/\/.*)?$/.test(line)).length ?? Number.POSITIVE_INFINITY
if (quickLines > 14) throw new Error(`README's quick start has ${quickLines} lines, and may have 14`)

/** The codes of warnings, which the page on events lists. */
const codes = new Set(
  [...sources.matchAll(/(?:\.warn\(|makeWarner\(|_tag: "Warning", code: )\s*"([a-z-]+)"/g)].map(([, code = ""]) => code)
)
const events = readFileSync("docs/events.md", "utf8")
const unlisted = [...codes].filter((code) => !events.includes(`| \`${code}\``))
if (codes.size === 0 || unlisted.length > 0) {
  throw new Error(`docs/events.md lacks the codes of warnings ${unlisted.join(", ")}`)
}

console.log(
  `docs: ${count} code blocks of ${pages.length} pages type-check, ${programs.length} of them run, all links lead somewhere`
)
