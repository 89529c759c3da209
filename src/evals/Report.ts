/**
 * Reports of evaluations: their numbers, as text, page and test results, and the comparison of two of them.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Report } from "effect-deepagents/evals"
 *
 * declare const before: Report.Report
 * declare const after: Report.Report
 *
 * const { pValue, difference } = Report.compare(before, after)
 * const isBetter = difference > 0 && pValue < 0.05
 * const stored = Schema.encodeSync(Schema.fromJsonString(Report.Report))(after)
 * ```
 */
import { add, type Usage, zero } from "../core/Usage.ts"
import { renderJUnit, renderMarkdown, renderPage } from "./internal/render.ts"
import { intervalOf, passAll, passAny, permutationTest, toWholes } from "./internal/statistics.ts"
import { Report, Score, type Summary, TrialReport } from "./internal/values.ts"

export { Report, Score, type Summary, TrialReport }

const summarizeCases = (cases: Report["cases"], k: number): Summary => {
  const trials = cases.flatMap((one) => one.trials)
  const passed = trials.filter((trial) => trial.passed).length
  const counted = cases
    .filter((one) => one.trials.length >= k)
    .map((one) => ({ passed: one.trials.filter((trial) => trial.passed).length, of: one.trials.length }))
  const meanOf = (estimate: typeof passAll) =>
    counted.reduce((sum, one) => sum + estimate(one.passed, one.of, k), 0) / Math.max(1, counted.length)
  return {
    passed,
    trials: trials.length,
    share: passed / Math.max(1, trials.length),
    interval: intervalOf(passed, trials.length),
    passAll: meanOf(passAll),
    passAny: meanOf(passAny),
    usage: trials.reduce((sum, { usage }) => add(sum, usage), zero),
    judging: trials.reduce((sum, { judging }) => (judging === undefined ? sum : add(sum, judging)), zero),
    time: trials.reduce((sum, { time }) => sum + time, 0),
    isPassed: cases.every((one) => one.trials.length === one.expected && one.trials.every((trial) => trial.passed))
  }
}

/** Gives the numbers of a report, for all cases and for each group. */
export const summarize = (report: Report): Summary & { readonly groups: ReadonlyMap<string, Summary> } => {
  const names = new Set(report.cases.flatMap(({ group }) => (group === undefined ? [] : [group])))
  const groups = [...names].map(
    (name) =>
      [
        name,
        summarizeCases(
          report.cases.filter(({ group }) => group === name),
          report.k
        )
      ] as const
  )
  return { ...summarizeCases(report.cases, report.k), groups: new Map(groups) }
}

/** Renders a report as Markdown: the numbers, the groups, and each case that did not pass with its evidence. */
export const toMarkdown = (report: Report): string => renderMarkdown(report, summarize(report))

/** Renders a report as JUnit XML, a test for each case, for continuous integration. */
export const toJUnit = (report: Report): string => renderJUnit(report)

/** Renders a report as one HTML page without scripts, with a plot of the shares and the evidence of each case. */
export const toHtml = (report: Report): string => renderPage(report, summarize(report))

/** A case in two reports: the shares of trials that passed. */
export interface Change {
  readonly name: string
  readonly before: number
  readonly after: number
}

/**
 * The comparison of two reports, by the cases that both have. `difference` is the mean change of a case's share.
 * `pValue` is of the paired permutation test of both sides: the change may be chance unless it is small (below 0.05).
 * `missing` are cases that only one report has.
 */
export interface Comparison {
  readonly difference: number
  readonly pValue: number
  readonly changes: ReadonlyArray<Change>
  readonly missing: ReadonlyArray<string>
  readonly usage: { readonly before: Usage; readonly after: Usage }
}

/** Compares two reports, such as reports on two models or two prompts. */
export const compare = (before: Report, after: Report): Comparison => {
  const shares = (report: Report) =>
    new Map(
      report.cases.map(({ name, trials }) => [
        name,
        { passed: trials.filter(({ passed }) => passed).length, of: trials.length }
      ])
    )
  const [old, fresh] = [shares(before), shares(after)]
  const both = [...old].flatMap(([name, was]) => {
    const now = fresh.get(name)
    return now === undefined || now.of === 0 || was.of === 0 ? [] : [{ name, was, now }]
  })
  const paired = new Set(both.map(({ name }) => name))
  // Each case counts the same, however many trials it had. The test is exact for whole numbers.
  const scaled = toWholes(
    both.map(({ now, was }) => ({ part: now.passed * was.of - was.passed * now.of, of: was.of * now.of }))
  )
  const changes = both.map(({ name, now, was }) => ({ name, before: was.passed / was.of, after: now.passed / now.of }))
  return {
    difference: changes.reduce((sum, one) => sum + one.after - one.before, 0) / Math.max(1, changes.length),
    pValue: permutationTest(scaled),
    changes,
    missing: [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => !paired.has(name)),
    usage: { before: summarize(before).usage, after: summarize(after).usage }
  }
}
