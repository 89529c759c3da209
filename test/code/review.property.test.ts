/** Generated scripts under review: the effects after an approval are the shown ones, after a denial there are no effects. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Approval, Json } from "effect-deepagents"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import * as TextDiff from "effect/TextDiff"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { runAll, snapshot } from "./reviewed.ts"

/** For long runs by hand: `CODE_REVIEWS=10000 npx vitest run test/code/review.property.test.ts`. */
const numRuns = Number(process.env["CODE_REVIEWS"] ?? scaled(480))

const paths = ["a.txt", "b.txt", "d/c.txt", "n/e.txt", "f.txt"]

/** Statements over the folder and the variable of one branch, as syntax trees of a few tools. */
const script: fc.Arbitrary<string> = fc
  .letrec<{ statement: string; body: string }>((tie) => {
    const path = fc.constantFrom(...paths).map((name) => `root + "${name}"`)
    const word = fc.constantFrom("a", "b", "q", "a\\nb\\n", "")
    return {
      body: fc.array(tie("statement"), { minLength: 1, maxLength: 4 }).map((all) => all.join("\n")),
      statement: fc.oneof(
        { maxDepth: 3, depthIdentifier: "statement" },
        path.map((file) => `s += await tools.read_file({ file_path: ${file} }).catch(() => "E")`),
        fc
          .tuple(path, word)
          .map(
            ([file, text]) =>
              `await tools.write_file({ file_path: ${file}, content: "${text}" + s.length }).catch(() => { s += "W" })`
          ),
        fc
          .tuple(path, word)
          .map(
            ([file, text]) =>
              `await tools.readFile({ file_path: ${file} }).catch(() => 0); await tools.edit_file({ file_path: ${file}, old_string: "a", new_string: "${text}", replace_all: true }).catch(() => { s += "xx" })`
          ),
        path.map((file) => `await tools.delete_file({ file_path: ${file} }).catch(() => { s += "D" })`),
        fc
          .tuple(path, path)
          .map(
            ([from, to]) => `await tools.move_file({ source: ${from}, destination: ${to} }).catch(() => { s += "M" })`
          ),
        fc.constant(
          `s += (await tools.glob({ pattern: "**/*.txt" })).split("\\n").filter((line) => line.startsWith(root)).length`
        ),
        fc.constant(`s += await tools.post({ text: root + s.length + Math.random() })`),
        fc.constant(`s += await tools.post({ text: "forbidden" }).catch((error) => error.reason)`),
        fc.constantFrom(1, 2).map((n) => `s += await tools.roll({ n: ${n} + s.length })`),
        fc.constant(`s += await tools.look({})`),
        fc.constant(`await store(root, s.length); s += await load(root)`),
        fc.constant(`s += await tools.nothing({}).catch(() => "U")`),
        fc
          .tuple(fc.integer({ min: 1, max: 3 }), tie("body"))
          .map(([n, body]) => `for (let i = 0; i < ${n}; i++) { ${body} }`),
        fc
          .tuple(fc.constantFrom(0, 1), tie("body"), tie("body"))
          .map(([odd, one, other]) => `if (s.length % 2 === ${odd}) { ${one} } else { ${other} }`)
      )
    }
  })
  .body.chain((body) =>
    fc.record({
      before: fc.constant(body),
      // Branches at once have a folder and a variable each: their own races are theirs.
      isParallel: fc.boolean()
    })
  )
  .map(({ before, isParallel }) => {
    const branch = `async (root) => { let s = ""; ${before}\nreturn s.length }`
    return isParallel ? `return await Promise.all(["/", "/x/", "/y/"].map(${branch}))` : `return await (${branch})("/")`
  })

interface Shown {
  readonly effects: ReadonlyArray<{ readonly name: string; readonly arguments: Json.JsonObject }>
  readonly changes: ReadonlyArray<{ readonly path: string; readonly diff: string }>
}

type Texts = { readonly [path: string]: string }

const withEnd = (text: string | undefined): string => text ?? ""

/** The changes of files between two moments, as a person is shown them. */
const changesOf = (before: Texts, after: Texts) =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted().flatMap((path) => {
    const [left, right] = [before[path], after[path]]
    if (left === right) return []
    if (left === undefined && right === "") return [{ path, diff: "(a new file, empty)\n" }]
    if (right === undefined && left === "") return [{ path, diff: "(deleted, it was empty)\n" }]
    return [{ path, diff: TextDiff.unified(TextDiff.lines(withEnd(left), withEnd(right), { maxEdits: 2_000 })) }]
  })

const sorted = (all: ReadonlyArray<unknown>): ReadonlyArray<string> => all.map((one) => JSON.stringify(one)).toSorted()

layer(NodeScripts.layer({ warm: 2 }))("a generated script under review", (it) => {
  it.effect(
    "has the effects that were shown, and none when it is denied",
    () =>
      Effect.gen(function* () {
        const seen = { parts: 0, effects: 0, unasked: 0 }
        for (const [at, source] of fc.sample(script, { seed: 7, numRuns }).entries()) {
          const did: Array<string> = []
          const calls: Array<Shown["effects"][number]> = []
          let shown: Shown = { effects: [], changes: [] }
          let before: Texts | undefined
          /** Checks that since the last look exactly the shown effects have happened. */
          const check = (now: Texts) => {
            assert.deepStrictEqual(changesOf(before ?? now, now), shown.changes, source)
            assert.deepStrictEqual(sorted(calls.splice(0)), sorted(shown.effects), source)
            before = now
          }
          const decide = (request: Approval.Request, part: number) =>
            Effect.gen(function* () {
              check(yield* snapshot)
              const isApproved = (at + part) % 3 !== 0
              // The arguments of these requests come from `questionOf`.
              shown = isApproved ? (request.arguments as unknown as Shown) : { effects: [], changes: [] }
              seen.parts++
              seen.effects += shown.effects.length
              return isApproved
            }).pipe(Effect.orDie)
          const { files, requests, text } = yield* runAll(source, { did, calls }, decide)
          if (requests.length === 0) seen.unasked++
          assert.notMatch(text, /was stopped/, source)
          check(files)
        }
        assert.isAbove(seen.effects, seen.parts)
      }),
    3_600_000
  )
})
