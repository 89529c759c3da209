/** Reports as Markdown, JUnit XML and HTML. All texts come from models and tools: they are escaped. */
import { totalTokens } from "../../core/Usage.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine, visible } from "../../support/text/untrusted.ts"
import type { Report, Summary } from "./values.ts"

type Case = Report["cases"][number]

interface Numbers extends Summary {
  readonly groups: ReadonlyMap<string, Summary>
}

const escapes: { readonly [character: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

const escapeMarkup = (text: string): string =>
  // XML has no characters U+FFFE and U+FFFF.
  visible(text)
    .replaceAll(/[\ufffe\uffff]/g, "")
    .replaceAll(/[&<>"']/g, (character) => valueAt(escapes, character) ?? "")

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

const isPassed = ({ expected, trials }: Case): boolean =>
  trials.length === expected && trials.every(({ passed }) => passed)

/** The reasons that trials of a case did not pass, each once. */
const findingsOf = ({ expected, trials }: Case): ReadonlyArray<string> => {
  const findings = trials.flatMap(({ problem, scores }) => [
    ...(problem === undefined ? [] : [`the run failed: ${problem}`]),
    ...scores
      .filter(({ kind, passed }) => kind === "correctness" && !passed)
      .map(({ evidence, name }) => `${name}: ${evidence}`)
  ])
  const missing = expected - trials.length
  return [...new Set(findings), ...(missing > 0 ? [`${missing} of ${expected} trials did not run`] : [])]
}

/** Reported scores that were missed, each once. */
const notesOf = ({ trials }: Case): ReadonlyArray<string> => [
  ...new Set(
    trials.flatMap(({ scores }) =>
      scores
        .filter(({ kind, passed }) => kind === "reported" && !passed)
        .map(({ evidence, name }) => `${name}: ${evidence}`)
    )
  )
]

const money = (cost: number | undefined): string => (cost === undefined ? "unknown" : cost.toFixed(4))

/** The usage of scorers, if there was any. */
const judgingOf = ({ judging }: Summary): ReadonlyArray<readonly [string, string]> =>
  totalTokens(judging) === 0
    ? []
    : [
        ["tokens of judges", String(totalTokens(judging))],
        ["cost of judges", money(judging.cost)]
      ]

/** The facts of a report, as names and values. */
const factsOf = ({ k }: Report, numbers: Summary): ReadonlyArray<readonly [string, string]> => {
  const [low, high] = numbers.interval
  return [
    ["passed", `${numbers.passed} of ${numbers.trials} trials`],
    ["share", `${percent(numbers.share)} (95 %: ${percent(low)} to ${percent(high)})`],
    [`pass^${k}`, percent(numbers.passAll)],
    [`pass@${k}`, percent(numbers.passAny)],
    ["tokens", String(totalTokens(numbers.usage))],
    ["cost", money(numbers.usage.cost)],
    ...judgingOf(numbers),
    ["time", `${(numbers.time / 1_000).toFixed(1)} s`]
  ]
}

/** A text in a cell or an item of Markdown: one line, without any markup. */
const plain = (text: string, most = 300): string =>
  cut(oneLine(text), most).replaceAll(/[\\`*_{}[\]<>#|!~]/g, (character) => `\\${character}`)

/** Renders a report as Markdown. */
export const renderMarkdown = (report: Report, numbers: Numbers): string => {
  const lines = [`# Evaluation of ${plain(report.agent)}`, ""]
  if (report.stopped !== undefined) lines.push(`**Stopped:** ${plain(report.stopped, 1_000)}`, "")
  lines.push("| | |", "| --- | --- |", ...factsOf(report, numbers).map(([name, value]) => `| ${name} | ${value} |`), "")
  if (numbers.groups.size > 0) {
    lines.push("| group | passed | share | 95 % |", "| --- | --- | --- | --- |")
    for (const [name, { interval, passed, share, trials }] of numbers.groups) {
      const [low, high] = interval
      lines.push(
        `| ${plain(name)} | ${passed} of ${trials} | ${percent(share)} | ${percent(low)} to ${percent(high)} |`
      )
    }
    lines.push("")
  }
  const failed = report.cases.filter((one) => !isPassed(one))
  if (failed.length > 0) {
    lines.push("## Not passed", "")
    for (const one of failed) {
      lines.push(`- **${plain(one.name)}** (${one.trials.filter(({ passed }) => passed).length} of ${one.expected})`)
      lines.push(...findingsOf(one).map((finding) => `  - ${plain(finding)}`))
    }
    lines.push("")
  }
  const noted = report.cases.filter((one) => notesOf(one).length > 0)
  if (noted.length > 0) {
    lines.push("## Reported", "")
    for (const one of noted)
      lines.push(
        `- **${plain(one.name)}**: ${notesOf(one)
          .map((note) => plain(note))
          .join("; ")}`
      )
    lines.push("")
  }
  return lines.join("\n")
}

const seconds = (cases: ReadonlyArray<Case>): string =>
  (cases.flatMap(({ trials }) => trials).reduce((sum, { time }) => sum + time, 0) / 1_000).toFixed(3)

const testOf = (agent: string, one: Case): ReadonlyArray<string> => {
  const head = `    <testcase name="${escapeMarkup(one.name)}" classname="${escapeMarkup(agent)}" time="${seconds([one])}"`
  if (isPassed(one)) return [`${head}/>`]
  if (one.trials.length === 0) return [`${head}>`, "      <skipped/>", "    </testcase>"]
  const [first = "", ...more] = findingsOf(one)
  const message = escapeMarkup(cut(oneLine(first), 300))
  const rest = escapeMarkup([first, ...more].join("\n"))
  return [`${head}>`, `      <failure message="${message}">${rest}</failure>`, "    </testcase>"]
}

/** Renders a report as JUnit XML. */
export const renderJUnit = (report: Report): string => {
  const groups = [...new Set(report.cases.map(({ group }) => group ?? ""))]
  const suites = groups.flatMap((group) => {
    const cases = report.cases.filter((one) => (one.group ?? "") === group)
    const failures = cases.filter((one) => one.trials.length > 0 && !isPassed(one)).length
    const skipped = cases.filter((one) => one.trials.length === 0).length
    const name = escapeMarkup(group === "" ? report.agent : group)
    return [
      `  <testsuite name="${name}" tests="${cases.length}" failures="${failures}" skipped="${skipped}" time="${seconds(cases)}">`,
      ...cases.flatMap((one) => testOf(report.agent, one)),
      "  </testsuite>"
    ]
  })
  return ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", ...suites, "</testsuites>", ""].join("\n")
}

const width = 360

/** A bar for a share, with its interval. */
const plot = ({ interval: [low, high], share }: Summary): string =>
  `<svg width="${width}" height="16" viewBox="0 0 ${width} 16" role="img" aria-label="${percent(share)}">` +
  `<rect class="all" width="${width}" height="16"/><rect class="hit" width="${(share * width).toFixed(1)}" height="16"/>` +
  `<path d="M${(low * width).toFixed(1)} 8H${(high * width).toFixed(1)}"/></svg>`

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2024;background:#fff}
table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}
.all{fill:#e4e7ea}.hit{fill:#2f7d4f}path{stroke:#1c2024;stroke-width:2}
.no{color:#a1260d}details{margin:.4rem 0}pre{white-space:pre-wrap;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#e6e8ea;background:#16191c}.all{fill:#31363b}.hit{fill:#4ea673}path{stroke:#e6e8ea}.no{color:#ff9a85}}`

const policy = "default-src 'none'; style-src 'unsafe-inline'"

const caseOf = (one: Case): string => {
  const passed = one.trials.filter((trial) => trial.passed).length
  const title = `<summary>${isPassed(one) ? "" : '<b class="no">not passed</b> '}${escapeMarkup(one.name)} (${passed} of ${one.expected})</summary>`
  const findings = [...findingsOf(one), ...notesOf(one)].map((text) => `<li>${escapeMarkup(text)}</li>`).join("")
  const texts = one.trials.map(({ text }) => `<pre>${escapeMarkup(text)}</pre>`).join("")
  return `<details${isPassed(one) ? "" : " open"}>${title}<ul>${findings}</ul>${texts}</details>`
}

/** Renders a report as an HTML page. */
export const renderPage = (report: Report, numbers: Numbers): string => {
  const facts = factsOf(report, numbers).map(([name, value]) => `<tr><th>${name}</th><td>${value}</td></tr>`)
  const bars = [["all", numbers] as const, ...numbers.groups].map(
    ([name, summary]) =>
      `<tr><th>${escapeMarkup(name)}</th><td>${plot(summary)}</td><td>${summary.passed} of ${summary.trials}</td></tr>`
  )
  const title = `Evaluation of ${escapeMarkup(report.agent)}`
  return [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">`,
    `<meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body>`,
    `<h1>${title}</h1>`,
    ...(report.stopped === undefined ? [] : [`<p class="no">Stopped: ${escapeMarkup(report.stopped)}</p>`]),
    `<table>${facts.join("")}</table><h2>Shares</h2><table>${bars.join("")}</table><h2>Cases</h2>`,
    ...report.cases.map(caseOf),
    "</body></html>",
    ""
  ].join("\n")
}
