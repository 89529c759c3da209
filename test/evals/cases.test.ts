/** The cases of `cases/*.jsonl` on scripted models: each case has its script. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { DeepAgent } from "effect-deepagents/deep"
import { Cases, Eval, Report, Scorers } from "effect-deepagents/evals"
import { TestChatModel } from "effect-deepagents/testing"

const folder = join(import.meta.dirname, "cases")
const groups = ["conversation", "files", "memory", "middleware", "retrieval", "summarization", "tools", "unit"]

const agent = DeepAgent.make({ name: "harness", prompt: "You do what is asked." })

const Script = Schema.Struct({
  script: Schema.Array(Schema.Union([Schema.String, Schema.Array(Schema.Tuple([Schema.String, Schema.JsonObject]))]))
})

const scripted = ({ metadata = {}, name }: Eval.Case) => {
  const { script } = Schema.decodeUnknownSync(Script)(metadata)
  assert.isNotEmpty(script, name)
  return TestChatModel.script(
    script.map((turn) =>
      typeof turn === "string"
        ? turn
        : TestChatModel.calls(turn.map(([tool, args]) => ({ name: tool, arguments: args })))
    )
  )
}

const casesOf = (group: string) => Cases.fromJsonl(readFileSync(join(folder, `${group}.jsonl`), "utf8"))

const evaluate = (cases: ReadonlyArray<Eval.Case>, model: typeof scripted) =>
  Eval.suite({
    agent,
    cases,
    scorers: [Scorers.expectations, Scorers.files],
    layer: (one) => Layer.merge(Eval.files(one), model(one))
  })

describe("the cases for a harness", () => {
  it.effect("there are at least 120, in eight groups, each with a name of its own", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        readdirSync(folder).toSorted(),
        groups.map((group) => `${group}.jsonl`)
      )
      const all = (yield* Effect.forEach(groups, casesOf)).flat()
      assert.isAtLeast(all.length, 120)
      assert.strictEqual(new Set(all.map(({ name }) => name)).size, all.length)
      for (const group of groups) assert.isAtLeast(all.filter((one) => one.group === group).length, 9, group)
    })
  )

  for (const group of groups) {
    it.effect(`${group}: a working model passes each case, and an idle one passes none`, () =>
      Effect.gen(function* () {
        const cases = yield* casesOf(group)
        const good = yield* evaluate(cases, scripted)
        assert.isTrue(Report.summarize(good).isPassed, Report.toMarkdown(good))
        // Reported scores fail no trial, but the scripts keep them, too.
        const missed = good.cases.flatMap(({ name, trials }) =>
          trials.flatMap(({ scores }) => scores.flatMap((score) => (score.passed ? [] : [`${name} ${score.name}`])))
        )
        assert.deepStrictEqual(missed, [])
        const idle = yield* evaluate(cases, () => TestChatModel.reactive(() => "Hm."))
        const passed = idle.cases.filter(({ trials }) => trials.some((trial) => trial.passed))
        assert.deepStrictEqual(
          passed.map(({ name }) => name),
          []
        )
      })
    )
  }
})
