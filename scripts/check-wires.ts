/**
 * Replays recorded answers of models in both directions, and prints a table: each answer is decoded by the layer of its
 * API, compared with what its own words say, and sent back in the next request, which is held to the rules of the API.
 *
 * ```sh
 * npm run check:wires ../fixtures              # fails if anything is wrong
 * npm run check:wires ../fixtures -- --all     # names what is refused on purpose, too
 * npm run check:wires ../fixtures -- --openapi ../openai-openapi/openapi.json
 * ```
 *
 * `--openapi` names OpenAI's own description of its API, of github.com/openai/openai-openapi. Answers and requests of its
 * two APIs are held to it. An answer that is not of the document (another version of the API, another server) counts as
 * beyond it; its items go back as they came.
 */
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import { readFixtures } from "./wires/fixtures.ts"
import { makeCheck } from "./wires/openapi.ts"
import { type Outcome, replayWith } from "./wires/replay.ts"

const {
  positionals: [folder],
  values: { all = false, openapi }
} = parseArgs({ allowPositionals: true, options: { all: { type: "boolean" }, openapi: { type: "string" } } })
if (folder === undefined) {
  console.error("name the folder of the recordings: npm run check:wires ../fixtures")
  process.exit(2)
}

const check = openapi === undefined ? undefined : makeCheck(readFileSync(openapi, "utf8"))

const replay = replayWith(check)
const outcomes: Array<Outcome> = []
for (const fixture of readFixtures(folder)) outcomes.push(await Effect.runPromise(replay(fixture)))

const columns = ["answers", "decoded", "failures", "unsupported", "sent back", "beyond", "wrong"] as const
const countOf = (own: ReadonlyArray<Outcome>): Readonly<Record<(typeof columns)[number], number>> => ({
  answers: own.length,
  decoded: own.filter(({ kind }) => kind === "decoded").length,
  failures: own.filter(({ kind }) => kind === "failure").length,
  unsupported: own.filter(({ kind }) => kind === "unsupported").length,
  "sent back": own.filter(({ isSent }) => isSent).length,
  beyond: own.filter(({ strange }) => strange !== undefined).length,
  wrong: own.filter(({ problems }) => problems.length > 0).length
})

const row = (cells: ReadonlyArray<string | number>): string =>
  cells.map((cell, at) => (at === 0 ? String(cell).padEnd(12) : String(cell).padStart(12))).join("")

console.log(row(["", ...columns]))
for (const api of ["responses", "chat", "anthropic", "gemini"] as const) {
  const counts = countOf(outcomes.filter(({ fixture }) => fixture.api === api))
  console.log(row([api, ...columns.map((column) => counts[column])]))
}
for (const { fixture, kind, problems, strange, why } of outcomes) {
  for (const problem of problems) console.log(`wrong: ${fixture.api} ${fixture.name}: ${problem}`)
  if (all && strange !== undefined) console.log(`beyond: ${fixture.api} ${fixture.name}: ${strange}`)
  if (all && kind !== "decoded") console.log(`${kind}: ${fixture.api} ${fixture.name}: ${why}`)
}
process.exitCode = outcomes.length === 0 || outcomes.some(({ problems }) => problems.length > 0) ? 1 : 0
