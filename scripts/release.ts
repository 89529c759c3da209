/**
 * Fills in and checks what only the publisher knows.
 *
 * - `npm run release -- https://github.com/owner/name` writes `repository`, `homepage` and `bugs` to package.json. npm
 *   needs `repository` for the provenance of the package
 * - `npm run release:check` fails while one of them is missing, and packs the package
 */
import { execFileSync } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { pack, published } from "./pack.ts"

const [given = ""] = process.argv.slice(2)
const manifest = JSON.parse(readFileSync("package.json", "utf8"))
const fields = ["repository", "homepage", "bugs"]

if (given === "--check") {
  const missing = fields.filter((field) => manifest[field] === undefined)
  if (missing.length > 0) {
    console.error(
      `package.json has no ${missing.join(", ")}. Fill them in: npm run release -- https://github.com/owner/name`
    )
    process.exit(1)
  }
  const file = pack(published)
  console.log(`ready: ${execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).trim().split("\n").length} files`)
  rmSync(file)
} else {
  const address = /^https:\/\/[^/\s]+\/[\w.-]+\/[\w.-]+$/.exec(given.replace(/[.]git$/, ""))?.[0]
  if (address === undefined) {
    console.error("Give the address of the repository: npm run release -- https://github.com/owner/name")
    process.exit(1)
  }
  const { version, ...rest } = manifest
  const { name, ...others } = rest
  const filled = {
    name,
    version,
    ...others,
    homepage: `${address}#readme`,
    bugs: `${address}/issues`,
    repository: { type: "git", url: `git+${address}.git` }
  }
  writeFileSync("package.json", `${JSON.stringify(filled, null, 2)}\n`)
  console.log(`package.json names ${address}.`)
}
