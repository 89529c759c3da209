/**
 * Keeps threads as the present version writes them, in a folder of their own, with the format that they are stored in:
 * tests of all later versions read them. `test/sessions/corpus.test.ts` says when this has to be run.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { formatOf } from "../test/sessions/format.ts"
import { writeInto } from "../test/sessions/written.ts"

const root = join(import.meta.dirname, "..")
const corpus = join(root, "test", "sessions", "corpus")
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

// A folder that is there is never changed: somebody may have threads like those in it.
let at = join(corpus, version)
for (let n = 2; existsSync(at); n++) at = join(corpus, `${version}-${n}`)

await Effect.runPromise(writeInto(at))
writeFileSync(join(at, "format.json"), `${JSON.stringify(formatOf(at))}\n`)
console.log(`The threads of this version are in ${at}: commit them.`)
