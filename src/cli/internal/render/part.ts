/** Renders finished parts for the scrollback. */
import { totalTokens } from "../../../core/Usage.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { cut } from "../../../support/text/text.ts"
import type { Part } from "../../../view/View.ts"
import { listing, render, type Surface } from "../markdown/markdown.ts"
import { fit, type Style, wrap } from "./style.ts"
import { about, count, duration, money, plural } from "./words.ts"

/** The widest line of prose, for readability. */
const readable = 120

/** The most lines of a diff. `Ctrl+O` shows all. */
const shownDiff = 40

/** Colours a diff line by line. Lines don't wrap, so that a copy is exact. */
const diffLines = (diff: string, style: Style): ReadonlyArray<string> =>
  diff
    .split("\n")
    .map((line) =>
      line.startsWith("+")
        ? style.green(line)
        : line.startsWith("-")
          ? style.red(line)
          : line.startsWith("@@")
            ? style.cyan(line)
            : style.dim(line)
    )

const bounded = (lines: ReadonlyArray<string>, most: number, style: Style): ReadonlyArray<string> =>
  lines.length <= most ? lines : [...lines.slice(0, most), style.dim(`… ${lines.length - most} more lines (Ctrl+O)`)]

/** The most lines of an error, of a failed command, and of a successful command. */
const shownError = 6
const shownFailed = 6
const shownDone = 3

/** A line that names an error. Its details below may be longer than the shown lines. */
const naming = /\b[A-Za-z]{0,60}(?:Error|Exception)\b|\bpanicked at\b/

/** The last lines of a command; of a failed one, the line that names its error too. */
const endLines = (end: ReadonlyArray<string>, isError: boolean): ReadonlyArray<string> => {
  const last = end.slice(isError ? -shownFailed : -shownDone)
  const named =
    isError && !last.some((line) => naming.test(line)) ? end.findLast((line) => naming.test(line)) : undefined
  return named === undefined ? last : [named, ...last]
}

/** The most lines and characters of a person's message. `/history` shows all. */
const shownSaid = { lines: 30, characters: 4_000 } as const

/** The beginning of a long message, and the size of its rest. */
const beginningOf = (text: string): { readonly lines: ReadonlyArray<string>; readonly rest: string | undefined } => {
  const all = text.split("\n")
  const head = all.length > shownSaid.lines ? all.slice(0, shownSaid.lines / 2) : all
  const beginning = head.join("\n")
  const lines = cut(beginning, shownSaid.characters).split("\n")
  if (all.length > lines.length) return { lines, rest: plural(all.length - lines.length, "more line") }
  return { lines, rest: beginning.length > shownSaid.characters ? "more characters" : undefined }
}

const tool = (part: Extract<Part, { readonly kind: "tool" }>, columns: number, style: Style): ReadonlyArray<string> => {
  const { diff, end = [], gist, isError, millis, name, output, summary } = part
  const mark = isError ? style.red("✗") : style.green("✓")
  const time = millis >= 1_000 ? ` · ${duration(millis)}` : ""
  const summaryText = isError ? style.red(summary) : style.dim(summary)
  const head = fit(`${mark} ${style.bold(name)} ${gist}`.trimEnd(), columns)
  const below = fit(`  ${summaryText}${style.dim(time)}`, columns)
  const lines =
    end.length > 0 ? endLines(end, isError) : isError ? output.trimEnd().split("\n").slice(1, shownError) : []
  const more = lines.map((line) => fit(style.dim(`  ${line}`), columns))
  return [
    head,
    ...(summary === "" && time === "" ? [] : [below]),
    ...more,
    ...(diff === undefined ? [] : bounded(diffLines(diff.trimEnd(), style), shownDiff, style))
  ]
}

const ends: { readonly [reason: string]: string } = {
  maxRounds: "stopped: the limit of rounds was reached",
  duplicateRounds: "stopped: the model went in circles",
  stopCondition: "stopped by a condition",
  suspended: "waits for a decision",
  refused: "refused",
  length: "cut off: the answer was too long",
  failed: "failed",
  interrupted: "interrupted; what was said is kept"
}

const usageOf = (part: Extract<Part, { readonly kind: "turnEnd" }>): string => {
  const { millis, stopReason, usage } = part
  const endText =
    valueAt(ends, stopReason) ??
    (stopReason.startsWith("budget:") ? `stopped: ${stopReason.slice(7)} budget spent` : "")
  return [
    ...(endText === "" ? [] : [endText]),
    duration(millis),
    `${about(usage)}${count(usage.inputTokens)} in, ${about(usage)}${count(usage.outputTokens)} out`,
    ...(usage.cost === undefined ? [] : [`${about(usage)}${money(usage.cost)}`])
  ].join(" · ")
}

const subagentLines = (
  { calls, millis, outcome, path, task, usage }: Extract<Part, { readonly kind: "subagent" }>,
  columns: number,
  style: Style
): ReadonlyArray<string> => {
  const mark = outcome === "completed" ? style.green("✓") : style.red("✗")
  const facts = `${plural(calls, "call")} · ${count(totalTokens(usage))} tokens · ${duration(millis)}${outcome === "completed" ? "" : ` · ${outcome}`}`
  return [fit(`${mark} ${style.bold(path.join(" › "))} ${task}`, columns), fit(style.dim(`  ${facts}`), columns)]
}

/** Renders a part. Listings, commands and diffs may be wider: the terminal wraps them softly. */
export const partLines = (part: Part, surface: Surface): ReadonlyArray<string> => {
  const { style } = surface
  const columns = surface.columns
  const prose = { ...surface, columns: Math.min(columns, readable) }
  switch (part.kind) {
    case "user": {
      const chips = part.attachments === 0 ? [] : [style.dim(`  [${part.attachments} attached]`)]
      const { lines: said, rest } = beginningOf(part.text)
      const lines = said.flatMap((line) => wrap(line, Math.max(10, prose.columns - 2)))
      const more = rest === undefined ? [] : [style.dim(`  [${rest}; /history shows all]`)]
      return ["", ...lines.map((line, index) => style.bold(`${index === 0 ? "› " : ""}${line}`)), ...more, ...chips, ""]
    }
    case "text":
      return [...render(part.markdown, prose), ""]
    case "code":
      return [
        ...(part.isFirst && part.language !== "" ? [style.dim(part.language)] : []),
        ...listing(part.text, part.language, surface),
        ...(part.more ? [] : [""])
      ]
    case "thinking":
      return [style.dim(`∴ thought for ${duration(part.millis)}, ${count(part.characters)} characters`)]
    case "tool":
      return tool(part, columns, style)
    case "subagent":
      return subagentLines(part, columns, style)
    case "decision":
      return [fit(style.dim(`  ${nameDecision(part.decision)} ${part.toolName}`), columns)]
    case "note": {
      const mark = part.level === "error" ? style.red : part.level === "warning" ? style.yellow : style.dim
      return wrap(part.text, prose.columns).map((line) => mark(line))
    }
    case "sources":
      return [
        ...part.sources.flatMap(({ number, title, url }) =>
          wrap(
            `[${number}] ${style.link(title, url)}${url === "" || url === title ? "" : ` ${style.dim(url)}`}`,
            prose.columns
          )
        ),
        ""
      ]
    case "turnEnd":
      return [...wrap(usageOf(part), prose.columns).map((line) => style.dim(line)), ""]
  }
}

const nameDecision = (decision: string): string => {
  switch (decision) {
    case "approve":
      return "✓ approved:"
    case "edit":
      return "✎ approved with other arguments:"
    case "reject":
      return "✗ rejected:"
    case "respond":
      return "✓ answered:"
    default:
      return "· no longer asked:"
  }
}
