/**
 * Fills in and checks what only the publisher knows.
 *
 * - `npm run release -- https://github.com/owner/name` writes `repository`, `homepage` and `bugs` to package.json. npm
 *   needs `repository` for the provenance of the package. The entry in the registry of the Agent Client Protocol gets
 *   the same address, and the version of the package
 * - `npm run release:check` fails while one of them is missing, and packs the package
 */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"

/** Reads the address of a repository. `undefined` for other texts, and for addresses with credentials. */
export const parseAddress = (text: string): string | undefined =>
  /^https:\/\/[\w.-]+(?::\d+)?\/[\w.-]+\/[\w.-]+$/.exec(text.replace(/[.]git$/, ""))?.[0]

const entryFile = "scripts/registry/agent.json"

/** Fills in an entry of the registry: `https://github.com/agentclientprotocol/registry/blob/main/FORMAT.md`. */
export const fillEntry = (entry: object, name: string, version: string, address: string) => ({
  ...entry,
  version,
  repository: address,
  website: `${address}#readme`,
  distribution: { npx: { package: `${name}@${version}`, args: ["acp"] } }
})

const fields = ["repository", "homepage", "bugs"]
const usage = "npm run release -- https://github.com/owner/name"

/** Stops the program with a sentence. */
const stop = (sentence: string): never => {
  console.error(sentence)
  process.exit(1)
}

const release = (text = ""): void => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"))
  if (text === "--check") {
    const missing = fields.filter((field) => manifest[field] === undefined)
    if (missing.length > 0) stop(`package.json has no ${missing.join(", ")}. Fill them in: ${usage}`)
    execFileSync(process.execPath, ["scripts/pack.ts"], { stdio: "inherit" })
    return
  }
  const address = parseAddress(text) ?? stop(`Give the address of the repository, without a password: ${usage}`)
  const { name, version, ...others } = manifest
  const filled = {
    name,
    version,
    ...others,
    homepage: `${address}#readme`,
    bugs: `${address}/issues`,
    repository: { type: "git", url: `git+${address}.git` }
  }
  writeFileSync("package.json", `${JSON.stringify(filled, null, 2)}\n`)
  const entry = fillEntry(JSON.parse(readFileSync(entryFile, "utf8")), name, version, address)
  writeFileSync(entryFile, `${JSON.stringify(entry, null, 2)}\n`)
  // The check of the format sorts the keys.
  execFileSync(process.execPath, ["node_modules/oxfmt/bin/oxfmt", "package.json", entryFile], { stdio: "inherit" })
  console.log(`package.json and ${entryFile} name ${address}.`)
}

if (import.meta.main) release(process.argv[2])
