/** `deepagents eval`, against a model that is spoken to over HTTP. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answer, type Reply, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const world = Effect.fnUntraced(function* (...replies: ReadonlyArray<Reply>) {
  const { requests, url } = yield* serve(...replies)
  const cwd = program.folder()
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test", XDG_DATA_HOME: join(cwd, "data") }
  writeFileSync(
    join(cwd, "cases.jsonl"),
    ['{"name": "ulm", "input": "Which river?", "contains": ["Danube"]}', '{"input": "2 + 2?", "contains": ["4"]}'].join(
      "\n"
    )
  )
  return { cwd, requests, run: (...args: ReadonlyArray<string>) => program.run(cwd, ["eval", ...args], env, "") }
})

describe("deepagents eval", { timeout: 120_000 }, () => {
  it.effect("reports each case, ends by the result, and compares with an earlier report", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, run } = yield* world(say("The Rhine."), say("It is 4."), say("The Danube."), say("It is 4."))
        const cases = join(cwd, "cases.jsonl")
        const before = join(cwd, "before.json")
        const bad = yield* run(cases, "--format", "json", "--output", before)
        assert.strictEqual(bad.code, 1, bad.err)
        assert.include(bad.err, "1 of 2 trials passed")
        assert.include(readFileSync(before, "utf8"), "The Rhine.")
        const good = yield* run(cases, "--before", before)
        assert.strictEqual(good.code, 0, good.err)
        assert.include(good.out, "2 of 2 trials")
        assert.include(good.err, "+50.0 % (p = 1.000: it may be chance)")
        assert.include(good.err, "ulm: 0.0 % → 100.0 %")
      })
    )
  )

  it.effect.runIf(isFull)("rejects calls that a person would decide on", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const call = { call: "write_file", id: "toolu_1", input: { file_path: "new.md", content: "x" } }
        const { cwd, requests, run } = yield* world(stream(answer([call])), say("Danube"), say("4"))
        const done = yield* run(join(cwd, "cases.jsonl"), "--format", "junit")
        assert.strictEqual(done.code, 0, done.err)
        assert.include(done.out, '<testcase name="ulm"')
        assert.include(JSON.stringify(requests[1]?.body.messages), "Nobody is there to ask")
        assert.throws(() => readFileSync(join(cwd, "new.md")))
      })
    )
  )

  it.effect.runIf(isFull)(
    "names a wrong field, a missing file, a wrong report and a place that can't be written, before it asks the model",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, requests, run } = yield* world()
          writeFileSync(join(cwd, "wrong.jsonl"), '{"input": "a", "contain": ["b"]}')
          const wrong = yield* run(join(cwd, "wrong.jsonl"))
          assert.strictEqual(wrong.code, 2)
          assert.include(wrong.err, 'Did you mean "contains"?')
          const missing = yield* run(join(cwd, "none.jsonl"))
          assert.strictEqual(missing.code, 2)
          assert.include(missing.err, "none.jsonl can't be read")
          const report = yield* run(join(cwd, "cases.jsonl"), "--before", join(cwd, "wrong.jsonl"))
          assert.strictEqual(report.code, 2)
          assert.include(report.err, "is no report of an evaluation")
          const nowhere = yield* run(join(cwd, "cases.jsonl"), "--output", join(cwd, "none", "report.md"))
          assert.strictEqual(nowhere.code, 2)
          assert.include(nowhere.err, "report.md can't be written")
          assert.strictEqual(requests.length, 0)
        })
      )
  )
})
