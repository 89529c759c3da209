/**
 * Checks that every public export is documented, with its category and since when it is there, and type-checks every ```ts block of README.md and docs/ against the sources. Each block is a module of its own; a block
 * that is no TypeScript, or must not be checked, has another language tag (```text).
 */
import { spawnSync } from "node:child_process"
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { codeBlocks } from "./markdown.ts"

const exported =
  /((?:\/\*\*(?:(?!\*\/)[^])*\*\/\n)?)^export (?:declare )?(?:const|function|class|interface|type) (\w+)/gm

/** Exports without a docstring or its tags. A type beside the value of its name has the value's. */
const undocumented = globSync("src/*/[A-Z]*.ts").flatMap((file) => {
  const known = new Set<string>()
  return [...readFileSync(file, "utf8").matchAll(exported)].flatMap(([, doc = "", name = ""]) => {
    if (known.has(name)) return []
    known.add(name)
    return /@category .*\n.*@since /.test(doc) ? [] : [`${file}: ${name}`]
  })
})
if (undocumented.length > 0) {
  throw new Error(`These exports need a docstring with @category and @since:\n${undocumented.join("\n")}`)
}

const folder = ".docs-snippets"
const pages = ["README.md", ...globSync("docs/**/*.md").sort()]

rmSync(folder, { recursive: true, force: true })
let count = 0
for (const page of pages) {
  for (const [index, block] of codeBlocks(readFileSync(page, "utf8")).entries()) {
    // Blank lines put the code on the line it has in the page, so that the compiler's line is the page's.
    const file = join(folder, page, `${index + 1}.ts`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, "\n".repeat(block.line - 1) + block.code)
    count++
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

const tsc = spawnSync("tsc", ["--pretty", "false", "-p", folder], { encoding: "utf8" })
if (tsc.error) throw tsc.error
if (tsc.status !== 0) {
  // ".docs-snippets/docs/tools.md/2.ts(31,7): error" is "docs/tools.md:31:7: error".
  console.error(tsc.stdout.replaceAll(/^\.docs-snippets\/(.+)\/\d+\.ts\((\d+),(\d+)\)/gm, "$1:$2:$3") + tsc.stderr)
  process.exit(1)
}
console.log(`docs: ${count} code blocks of ${pages.length} pages type-check`)
