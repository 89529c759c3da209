/**
 * Replays recorded answers of models in both directions, and prints a table: each answer is decoded by the layer of its
 * API, compared with what its own words say, and sent back in the next request, which is held to the rules of the API.
 *
 * ```sh
 * npm run check:wires ../fixtures              # fails if anything is wrong
 * npm run check:wires ../fixtures -- --all     # names what is refused on purpose, too
 * ```
 */
import * as Effect from "effect/Effect"
import { readFixtures } from "./wires/fixtures.ts"
import { type Outcome, replay } from "./wires/replay.ts"

const [, , folder, ...flags] = process.argv
if (folder === undefined) {
  console.error("name the folder of the recordings: npm run check:wires ../fixtures")
  process.exit(2)
}

const outcomes: Array<Outcome> = []
for (const fixture of readFixtures(folder)) outcomes.push(await Effect.runPromise(replay(fixture)))

const columns = ["answers", "decoded", "failures", "unsupported", "sent back", "wrong"] as const
const countOf = (own: ReadonlyArray<Outcome>): Readonly<Record<(typeof columns)[number], number>> => ({
  answers: own.length,
  decoded: own.filter(({ kind }) => kind === "decoded").length,
  failures: own.filter(({ kind }) => kind === "failure").length,
  unsupported: own.filter(({ kind }) => kind === "unsupported").length,
  "sent back": own.filter(({ isSent }) => isSent).length,
  wrong: own.filter(({ problems }) => problems.length > 0).length
})

const row = (cells: ReadonlyArray<string | number>): string =>
  cells.map((cell, at) => (at === 0 ? String(cell).padEnd(12) : String(cell).padStart(12))).join("")

console.log(row(["", ...columns]))
for (const api of ["responses", "chat", "anthropic", "gemini"] as const) {
  const counts = countOf(outcomes.filter(({ fixture }) => fixture.api === api))
  console.log(row([api, ...columns.map((column) => counts[column])]))
}
for (const { fixture, kind, problems, why } of outcomes) {
  for (const problem of problems) console.log(`wrong: ${fixture.api} ${fixture.name}: ${problem}`)
  if (flags.includes("--all") && kind !== "decoded") console.log(`${kind}: ${fixture.api} ${fixture.name}: ${why}`)
}
process.exitCode = outcomes.length === 0 || outcomes.some(({ problems }) => problems.length > 0) ? 1 : 0
