/**
 * Changes `src/core` one small thing at a time and runs the tests: what no test notices is a survivor. By hand:
 *
 *   npm run mutate                           all of it
 *   npm run mutate -- --sample 60 --seed 2   some of it
 *   npm run mutate -- gate history           these files
 *
 * All mutants are in one copy of the sources, each behind a switch, so that nothing is loaded or transformed anew for
 * one of them. A first run finds which test files come to which switches; then each mutant is held against those, the
 * quick ones first. Survivors that do not type-check are no mutants, and are left out.
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import * as fc from "fast-check"
import { parseAst } from "rolldown/parseAst"
import { BaseSequencer, createVitest, type TestModule, type TestSpecification } from "vitest/node"

/** A piece of a file, and what stands in its place. A statement is left out, an expression replaced. */
interface Mutant {
  readonly file: string
  readonly start: number
  readonly end: number
  readonly text: string
}

type Node = { readonly type: string; readonly start: number; readonly end: number } & {
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

const childrenOf = (node: Node): ReadonlyArray<Node> =>
  Object.values(node).flatMap((value) => (Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []))

const opposite: { readonly [operator: string]: string } = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "&&": "||",
  "||": "&&",
  "+": "-"
}

const methods = new Map([
  ["some", "every"],
  ["every", "some"],
  ["find", "findLast"],
  ["push", "unshift"]
])

/** What can be changed about a node: pieces of text in its place. */
const changes = (node: Node, source: string): ReadonlyArray<Omit<Mutant, "file">> => {
  const { end, start } = node
  const text = (part: unknown): string => (isNode(part) ? source.slice(part.start, part.end) : "")
  const instead = (...texts: ReadonlyArray<string>) => texts.map((one) => ({ start, end, text: one }))
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression": {
      const operator = opposite[String(node["operator"])]
      return operator === undefined ? [] : instead(`((${text(node["left"])}) ${operator} (${text(node["right"])}))`)
    }
    case "UnaryExpression":
      return node["operator"] === "!" ? instead(text(node["argument"])) : []
    case "Literal":
      return typeof node["value"] === "boolean" ? instead(String(node["value"] === false)) : []
    case "IfStatement":
    case "ConditionalExpression": {
      const { test } = node
      if (!isNode(test)) return []
      const was = { start: test.start, end: test.end }
      return [
        { ...was, text: `((${text(test)}) && false)` },
        { ...was, text: `((${text(test)}) || true)` }
      ]
    }
    case "ExpressionStatement":
      return instead(";")
    case "SpreadElement": {
      const { argument } = node
      if (!isNode(argument) || argument.type === "ObjectExpression") return []
      return [{ start: argument.start, end: argument.end, text: "[]" }]
    }
    case "CallExpression": {
      const { callee } = node
      const property = isNode(callee) && callee.type === "MemberExpression" ? callee["property"] : undefined
      const other = methods.get(text(property))
      if (other === undefined || !isNode(property)) return []
      return instead(source.slice(start, property.start) + other + source.slice(property.end, end))
    }
    default:
      return []
  }
}

const mutantsOf = (file: string): ReadonlyArray<Mutant> => {
  const source = readFileSync(file, "utf8")
  const visit = (node: Node): ReadonlyArray<Mutant> =>
    node.type.startsWith("TS") && !node.type.endsWith("Expression")
      ? []
      : [...changes(node, source).map((change) => ({ file, ...change })), ...childrenOf(node).flatMap(visit)]
  return childrenOf(parseAst(source, { lang: "ts" }, file) as unknown as Node).flatMap(visit)
}

/** A file in which each mutant stands beside what it replaces, behind a switch of its number. */
const withSwitches = (source: string, mutants: ReadonlyArray<readonly [id: number, mutant: Mutant]>): string => {
  // What is within a mutated piece is mutated too: outer pieces open first, and close last.
  const nested = mutants.toSorted(([, a], [, b]) => a.start - b.start || b.end - a.end)
  const before = new Map<number, string>()
  const after = new Map<number, string>()
  for (const [id, { end, start, text }] of nested) {
    const isOn = `globalThis.mutant?.(${id})`
    const open = text === ";" ? `{ if (!${isOn}) {` : `(${isOn} ? (${text}) : (`
    before.set(start, (before.get(start) ?? "") + open)
    after.set(end, (text === ";" ? "} }" : "))") + (after.get(end) ?? ""))
  }
  const places = [...new Set([0, ...before.keys(), ...after.keys(), source.length])].toSorted((a, b) => a - b)
  return places
    .map((at, index) => (after.get(at) ?? "") + (before.get(at) ?? "") + source.slice(at, places[index + 1] ?? at))
    .join("")
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: "string" }, seed: { type: "string", default: "1" } }
})

/** Some of a list, the same ones for the same seed. */
const sampleOf = <A>(list: Array<A>, count: number, seed: number): ReadonlyArray<A> => {
  const length = Math.min(count, list.length)
  const subset = fc.subarray(list, { minLength: length, maxLength: length })
  return fc.sample(subset, { seed, numRuns: 1 })[0] ?? []
}

const root = process.cwd()
const copy = mkdtempSync(join(tmpdir(), "mutate-"))
for (const name of ["src", "test", "package.json", "vitest.config.ts", ...globSync("tsconfig*.json")]) {
  cpSync(name, join(copy, name), { recursive: true })
}
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
process.on("exit", () => rmSync(copy, { recursive: true, force: true }))

const files = globSync(["src/core/*.ts", "src/core/{loop,internal}/*.ts"], { cwd: copy })
  .filter((file) => positionals.length === 0 || positionals.includes(basename(file, ".ts")))
  .toSorted()
  .map((file) => join(copy, file))
const all = files.flatMap(mutantsOf)
const chosen = values.sample === undefined ? all : sampleOf(all, Number(values.sample), Number(values.seed))
const sources = new Map(files.map((file) => [file, readFileSync(file, "utf8")]))
for (const [file, source] of sources) {
  const inFile = [...chosen.entries()].filter(([, mutant]) => mutant.file === file)
  writeFileSync(file, withSwitches(source, inFile))
}
const setup = join(copy, "switches.ts")
writeFileSync(
  setup,
  `import { afterAll } from "vitest"
   const hits = new Set<number>()
   const on = Number(process.env.MUTANT)
   Object.assign(globalThis, { mutant: (id: number) => (hits.add(id), id === on) })
   afterAll(({}, suite) => void Object.assign(suite.meta, { hits: [...hits] }))`
)

const vitest = await createVitest("test", {
  root: copy,
  watch: false,
  reporters: [{}],
  globalSetup: [],
  setupFiles: [setup],
  maxWorkers: 1,
  bail: 1,
  // As they are given: the quick ones first.
  sequence: {
    sequencer: class extends BaseSequencer {
      override sort = (specs: Array<TestSpecification>) => Promise.resolve(specs)
    }
  }
})
const [project] = vitest.projects
if (project === undefined) throw new Error("there is no project")

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** The test files as they ran; nothing if one failed, or they did not end in so many milliseconds. */
const run = async (specs: ReadonlyArray<TestSpecification>, mutant: string, longest: number) => {
  project.config.env = { MUTANT: mutant }
  const ends = Date.now() + longest
  // Asked twice, it stops by force: a loop that never ends hears nothing.
  const timers = [longest, longest + 5_000].map((time) =>
    setTimeout(() => void vitest.cancelCurrentRun("test-failure"), time)
  )
  for (;;) {
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications([...specs])
    const ran = testModules.filter(({ moduleId }) => specs.some((spec) => spec.moduleId === moduleId))
    const failed = unhandledErrors.length > 0 || ran.some((module) => module.state() === "failed")
    // The end of the run before may have cancelled this one.
    const skipped = ran.some((module) => module.state() !== "passed")
    if (!failed && skipped && Date.now() < ends) {
      await pause(100)
      continue
    }
    timers.forEach(clearTimeout)
    return failed || skipped ? undefined : ran
  }
}

const hitsOf = (module: TestModule): ReadonlyArray<number> => (module.meta() as { hits?: Array<number> }).hits ?? []
const tests = await vitest.globTestSpecifications(["test/core/", "test/middleware/", "test/sessions/Chat"])
const first = await run(tests, "none", 600_000)
if (first === undefined) throw new Error("the tests fail as they are")
const usual = first.reduce((sum, module) => sum + module.diagnostic().duration, 0)
const hit = first
  .toSorted((a, b) => a.diagnostic().duration - b.diagnostic().duration)
  .map((module) => ({ hits: new Set(hitsOf(module)), spec: module.toTestSpecification() }))

const survivors: Array<Mutant> = []
const lineOf = ({ end, file, start, text }: Mutant): string => {
  const source = sources.get(file) ?? ""
  return `${basename(file)}:${source.slice(0, start).split("\n").length}  ${source.slice(start, end)}  ->  ${text}`
}
for (const [id, mutant] of chosen.entries()) {
  const specs = hit.flatMap(({ hits, spec }) => (hits.has(id) ? [spec] : []))
  if (specs.length > 0 && (await run(specs, String(id), usual * 3 + 30_000)) === undefined) continue
  survivors.push(mutant)
  console.log(`${id + 1} of ${chosen.length} survived${specs.length === 0 ? ", never run" : ""}: ${lineOf(mutant)}`)
}
await vitest.close()
for (const [file, source] of sources) writeFileSync(file, source)
const typed = survivors.filter((mutant) => {
  const source = sources.get(mutant.file) ?? ""
  writeFileSync(mutant.file, source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end))
  const { status } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.json"], { cwd: copy })
  writeFileSync(mutant.file, source)
  return status === 0
})
console.log(typed.map(lineOf).join("\n"))
const untyped = survivors.length - typed.length
console.log(`${typed.length} of ${chosen.length - untyped} mutants (of ${all.length}) survived`)
process.exitCode = typed.length === 0 ? 0 : 1
