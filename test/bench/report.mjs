// What the benchmarks have in common: processes that take turns, medians of what they measure, and Markdown tables.
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { findPackageJSON } from "node:module"
import { cpus, loadavg, totalmem } from "node:os"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { median } from "./workloads.mjs"

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const run = promisify(execFile)

// No key and no tracing, whatever the shell has.
const bare = { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "production" }

/** Runs `node <script> <args>` and reads the last line that it prints. One that fails is a sample with an `error`. */
const measure = async (script, args, { env = {}, flags = [], signal, timeout = 300_000 }) => {
  const options = { env: { ...bare, ...env }, signal, timeout, cwd: here("."), maxBuffer: 1e8 }
  try {
    const { stdout } = await run(process.execPath, [...flags, here(script), ...args], options)
    return JSON.parse(stdout.trimEnd().split("\n").at(-1))
  } catch (error) {
    process.exitCode = 1
    const text = error.killed ? `it took longer than ${timeout} ms` : String(error.stderr ?? error)
    return { error: text.trim().slice(-600) }
  }
}

/**
 * Measures each scenario of `plan` (its name, who takes part, how often) in turns, each time in a process of its own that
 * runs `script`.
 * Gives `samples[name][scenario]`, a list with one sample a repetition.
 */
export const race = async ({ script: usual, plan, effort, ...options }) => {
  const samples = {}
  for (let repetition = 0; repetition < Math.max(...plan.map(({ times }) => times)); repetition++) {
    for (const { names, scenario, script = usual, times } of plan) {
      if (repetition >= times) continue
      for (const name of names) {
        const sample = await measure(script, [name, scenario, String(effort)], options)
        ;((samples[name] ??= {})[scenario] ??= []).push(sample)
        const told = sample.error ?? show(sample.value)
        console.error(`${repetition + 1}  ${scenario.padEnd(8)} ${name.padEnd(15)} ${told}`)
      }
    }
  }
  return samples
}

export const show = (number) => {
  if (number >= 1_000_000) return `${(number / 1_000_000).toFixed(1)} M`
  if (number >= 100_000) return `${Math.round(number / 1_000)} k`
  if (number >= 100) return Math.round(number).toLocaleString("en-US")
  return number.toFixed(number >= 10 ? 0 : number >= 1 ? 1 : 2)
}

/** The median of what `read` takes out of the samples of one racer. */
export const medianOf = (samples, name, scenario, read) => {
  const numbers = (samples[name]?.[scenario] ?? []).map(read).filter(Number.isFinite)
  return numbers.length === 0 ? undefined : median(numbers)
}

/** The median of the ratios within each repetition. */
export const ratioOf = (samples, name, by, scenario, read) => {
  const others = samples[by]?.[scenario] ?? []
  const ratios = (samples[name]?.[scenario] ?? []).map((sample, index) => read(sample) / read(others[index] ?? {}))
  const numbers = ratios.filter(Number.isFinite)
  return numbers.length === 0 ? undefined : median(numbers)
}

/** A cell: the median, and with `ratio` how many times that of another racer it is. */
export const cell = (samples, name, { ratio, read, scenario }) => {
  const number = medianOf(samples, name, scenario, read)
  if (number === undefined) {
    const list = samples[name]?.[scenario] ?? []
    return list.some(({ error }) => error !== undefined) ? "failed" : ""
  }
  const times = ratio === undefined || name === ratio ? undefined : ratioOf(samples, name, ratio, scenario, read)
  return times === undefined ? show(number) : `${show(number)} (${show(times)}×)`
}

/** A Markdown table as the formatter leaves it: the first column to the left, the others to the right. */
export const table = ([head, ...rows]) => {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => row[column].length)))
  const line = (row) =>
    `| ${row.map((text, at) => (at ? text.padStart(widths[at]) : text.padEnd(widths[at]))).join(" | ")} |`
  const rule = widths.map((width, at) => (at ? `${"-".repeat(width - 1)}:` : "-".repeat(width)))
  return [line(head), `| ${rule.join(" | ")} |`, ...rows.map(line)].join("\n")
}

/** A table of racers (`[name, title]`) by columns. Columns and rows of which nothing was measured are left out. */
export const racersTable = (samples, racers, { columns, title }) => {
  const shown = columns.filter(({ scenario }) => racers.some(([name]) => samples[name]?.[scenario] !== undefined))
  const rows = racers
    .map(([name, what]) => [what, ...shown.map((column) => cell(samples, name, column))])
    .filter((row) => row.slice(1).some((text) => text !== ""))
  return rows.length === 0 ? [] : [`## ${title}`, table([["", ...shown.map((column) => column.title)], ...rows])]
}

/** Budgets of ours: at `most` or at `least`, of what `read` gives, or of how many times that `by` another it is. */
export const budgetTable = (samples, budgets) => {
  const rows = budgets.flatMap(({ by, least, most, name = "ours", read, scenario, what }) => {
    const number =
      by === undefined ? medianOf(samples, name, scenario, read) : ratioOf(samples, name, by, scenario, read)
    if (number === undefined) return []
    const isKept = most === undefined ? number >= least : number <= most
    return [[what, most === undefined ? `≥ ${show(least)}` : `≤ ${most}`, show(number), isKept ? "pass" : "**fail**"]]
  })
  return rows.length === 0 ? [] : ["## Budgets", table([["", "budget", "measured", ""], ...rows])]
}

const failures = (samples) => {
  const lines = Object.entries(samples).flatMap(([name, of]) =>
    Object.entries(of).flatMap(([scenario, list]) =>
      list.flatMap(({ error }) =>
        error === undefined ? [] : [`- ${name}, ${scenario}: \`${error.replaceAll("\n", " ")}\``]
      )
    )
  )
  return lines.length === 0 ? [] : ["## Failed", lines.join("\n")]
}

const versionOf = (name) => JSON.parse(readFileSync(findPackageJSON(name, import.meta.url), "utf8")).version

const loadBefore = loadavg()[0]

/** What was measured, with when and on what, and what failed. */
export const report = (samples, packages, parts) => {
  const machine = `${cpus().length} cores of ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB`
  const [before, after] = [loadBefore, loadavg()[0]].map((number) => number.toFixed(1))
  const date = new Date().toISOString().slice(0, 10)
  return [
    `Measured ${date} with node ${process.version} on ${machine} (load ${before} before, ${after} after).`,
    packages.map((name) => `${name} ${versionOf(name)}`).join(", "),
    ...parts,
    ...failures(samples)
  ]
    .filter((text) => text !== "")
    .join("\n\n")
}

const [start, end] = ["<!-- bench:start -->", "<!-- bench:end -->"]

/** Puts a report between the marks of a page of the docs. */
export const writeDocs = (page, text) => {
  const file = here(`../../docs/${page}`)
  const old = readFileSync(file, "utf8")
  writeFileSync(file, `${old.slice(0, old.indexOf(start))}${start}\n\n${text}\n\n${old.slice(old.indexOf(end))}`)
}
