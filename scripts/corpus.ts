/**
 * Keeps threads as the present version writes them, in a folder of their own, with the format that they are stored in:
 * tests of all later versions read them. `test/sessions/corpus.test.ts` says when this has to be run.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { formatOf } from "../test/sessions/format.ts"
import { writeInto } from "../test/sessions/written.ts"

const root = join(import.meta.dirname, "..")
const corpus = join(root, "test", "sessions", "corpus")
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const folderOf = (n: number): string => join(corpus, n === 1 ? version : `${version}-${n}`)

let last = 0
while (existsSync(folderOf(last + 1))) last++
// What a release wrote is never changed: somebody has threads like those. Before, the last folder is written anew.
const isReleased = execFileSync("git", ["tag", "--list", `v${version}`], { cwd: root }).length > 0
const at = folderOf(isReleased ? last + 1 : Math.max(last, 1))
rmSync(at, { recursive: true, force: true })

await Effect.runPromise(writeInto(at))
writeFileSync(join(at, "format.json"), `${JSON.stringify(formatOf(at))}\n`)
console.log(`The threads of this version are in ${at}: commit them.`)
