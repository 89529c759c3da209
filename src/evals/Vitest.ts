/**
 * A matcher for [Vitest](https://vitest.dev): a test fails with the report, which says which cases failed and why.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Eval, Scorers } from "effect-deepagents/evals"
 * import { matchers } from "effect-deepagents/evals/Vitest"
 * import { TestChatModel } from "effect-deepagents/testing"
 * import { expect } from "vitest"
 *
 * expect.extend(matchers)
 *
 * const clerk = Agent.make({ name: "clerk", prompt: "You answer." })
 * const cases = [{ name: "ulm", input: "Which river flows through Ulm?", contains: ["Danube"] }]
 *
 * it.effect("the clerk knows rivers", () =>
 *   Effect.gen(function* () {
 *     const report = yield* Eval.suite({ agent: clerk, cases, scorers: [Scorers.expectations] })
 *     expect(report).toPassEvaluation()
 *   }).pipe(Effect.provide(TestChatModel.script(["The Danube."])))
 * )
 * ```
 */
import * as Schema from "effect/Schema"
import type {} from "vitest"
import * as Report from "./Report.ts"

declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> {
    /** Passes if all trials of a report of `Eval.suite` passed, and none is missing. */
    toPassEvaluation: T extends Report.Report ? () => R : never
  }
}

const isReport = Schema.is(Report.Report)

/** The matchers, for `expect.extend`. */
export const matchers = {
  toPassEvaluation: (report: unknown) =>
    isReport(report)
      ? { pass: Report.summarize(report).isPassed, message: () => Report.toMarkdown(report) }
      : { pass: false, message: () => "This is no report: give what Eval.suite returns" }
}
