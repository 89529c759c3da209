/**
 * Changes src/core/loop and src/core/internal one small thing at a time and runs the tests: what no test notices is a survivor. By hand:
 *
 *   npm run mutate                          all of it (hours)
 *   npm run mutate -- --sample 60 --seed 2  some of it
 *   npm run mutate -- gate history          these files
 *
 * It works on a copy. Survivors that do not type-check are no mutants, and are left out.
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { parseArgs } from "node:util"
import { parseAst } from "rolldown/parseAst"

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

const methods: { readonly [name: string]: string } = { some: "every", every: "some", find: "findLast", push: "unshift" }

/** What can be changed about a node: pieces of text in its place. */
const changes = (node: Node, source: string): ReadonlyArray<Omit<Mutant, "file">> => {
  const { end, start } = node
  const text = (part: unknown): string => (isNode(part) ? source.slice(part.start, part.end) : "")
  const instead = (...texts: ReadonlyArray<string>) => texts.map((one) => ({ start, end, text: one }))
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression": {
      const operator = opposite[String(node["operator"])]
      return operator === undefined ? [] : instead(`(${text(node["left"])} ${operator} ${text(node["right"])})`)
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
    case "SpreadElement":
      return isNode(node["argument"]) && node["argument"].type !== "ObjectExpression" ? instead("...[]") : []
    case "MemberExpression": {
      const { property } = node
      const other = methods[text(property)]
      return other === undefined || !isNode(property) ? [] : [{ start: property.start, end: property.end, text: other }]
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

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: "string" }, seed: { type: "string", default: "1" } }
})

/** A shuffle that is the same for the same seed. */
const shuffled = <A>(list: ReadonlyArray<A>, seed: number): ReadonlyArray<A> =>
  list
    .map((value, index) => ({ value, key: Math.imul(index + 1, 2_654_435_761 ^ (seed * 40_503)) >>> 0 }))
    .toSorted((a, b) => ((a.key ^ (a.key >>> 15)) >>> 0) - ((b.key ^ (b.key >>> 15)) >>> 0))
    .map(({ value }) => value)

const root = process.cwd()
const copy = mkdtempSync(join(tmpdir(), "mutate-"))
for (const name of ["src", "test", "package.json", "vitest.config.ts", ...globSync("tsconfig*.json")]) {
  cpSync(name, join(copy, name), { recursive: true })
}
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
process.on("exit", () => rmSync(copy, { recursive: true, force: true }))

const files = globSync("src/core/{loop,internal}/*.ts", { cwd: copy })
  .filter((file) => positionals.length === 0 || positionals.includes(basename(file, ".ts")))
  .toSorted()
const all = files.flatMap((file) => mutantsOf(join(copy, file)))
const chosen = values.sample === undefined ? all : shuffled(all, Number(values.seed)).slice(0, Number(values.sample))

const run = (command: string, args: ReadonlyArray<string>): boolean =>
  spawnSync(join(root, "node_modules/.bin", command), args, { cwd: copy, stdio: "ignore", timeout: 180_000 }).status ===
  0

const middleware = ["HumanInTheLoop", "Budget", "Subagents", "Guardrail", "Handoffs"]
/** The tests, those that notice most first. */
const tests: ReadonlyArray<ReadonlyArray<string>> = [
  ["test/core", "--exclude=**/*.property.test.ts"],
  ["truth.property", "test/sessions/Chat", ...middleware.map((name) => `test/middleware/${name}`)]
]
const pass = () => tests.every((which) => run("vitest", ["run", "--no-isolate", "--bail=1", ...which]))
const survivors: Array<string> = []
let untyped = 0
if (!pass()) throw new Error("the tests fail as they are")
for (const [index, { end, file, start, text }] of chosen.entries()) {
  const source = readFileSync(file, "utf8")
  writeFileSync(file, source.slice(0, start) + text + source.slice(end))
  const isNoticed = !pass()
  const isMutant = isNoticed || run("tsc", ["-p", "tsconfig.json"])
  writeFileSync(file, source)
  if (!isMutant) untyped++
  if (isNoticed || !isMutant) continue
  const line = source.slice(0, start).split("\n").length
  survivors.push(`${basename(file)}:${line}  ${source.slice(start, end)}  ->  ${text}`)
  console.log(`${index + 1} of ${chosen.length} survived: ${survivors.at(-1)}`)
}
console.log(`${survivors.length} of ${chosen.length - untyped} mutants (of ${all.length}) survived`)
process.exitCode = survivors.length === 0 ? 0 : 1
