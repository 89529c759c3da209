import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent } from "effect-deepagents"
import { Eval, Scorers } from "effect-deepagents/evals"
import { matchers } from "effect-deepagents/evals/Vitest"
import { TestChatModel } from "effect-deepagents/testing"
import { expect } from "vitest"

expect.extend(matchers)

const clerk = Agent.make({ name: "clerk", prompt: "" })
const cases = [
  { name: "ulm", input: "Which river?", contains: ["Danube"] },
  { name: "sum", input: "2 + 2?", contains: ["4"] }
]
const suite = (answers: ReadonlyArray<string>) =>
  Eval.suite({ agent: clerk, cases, scorers: [Scorers.expectations], concurrency: 1 }).pipe(
    Effect.provide(TestChatModel.script(answers))
  )

describe("toPassEvaluation", () => {
  it.effect("passes with a report that passes, and fails with the cases and reasons of one that does not", () =>
    Effect.gen(function* () {
      const passing = yield* suite(["The Danube.", "4"])
      const failing = yield* suite(["The Rhine.", "4"])
      expect(passing).toPassEvaluation()
      expect(failing).not.toPassEvaluation()
      expect(() => expect(failing).toPassEvaluation()).toThrow(/ulm[^]*"Danube"/)
      expect(() => expect(passing).not.toPassEvaluation()).toThrow(/100\.0 %/)
      // A trial that did not run is no success.
      const missing = { ...passing, cases: passing.cases.map((one) => ({ ...one, expected: 2 })) }
      expect(() => expect(missing).toPassEvaluation()).toThrow(/1 of 2 trials did not run/)
    })
  )

  it("fails with a value that is no report", () => {
    const matcher = matchers.toPassEvaluation({ isPassed: true })
    expect([matcher.pass, matcher.message()]).toEqual([false, "This is no report: give what Eval.suite returns"])
    // @ts-expect-error -- the type of the matcher knows it, too
    expect(() => expect("passed").toPassEvaluation()).toThrow(/no report/)
  })
})
