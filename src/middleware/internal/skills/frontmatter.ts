/** Reads the frontmatter of a `SKILL.md`, and names each field that breaks the specification. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import { at, problems } from "../../../support/text/issues.ts"
import { type Yaml, yaml } from "../../../support/text/yaml.ts"

/** Limits of the specification (agentskills.io), and limits against hostile files. */
export const limits = {
  /** In characters. */
  name: 64,
  description: 1024,
  compatibility: 500,
  license: 1024,
  frontmatter: 8192,
  /** The most characters with a meaning in YAML: they determine the cost of parsing. */
  indicators: 1000,
  lines: 128,
  depth: 8,
  tools: 100
} as const

/** A problem in a skill's frontmatter; `field` is empty for the whole. */
export interface FieldProblem {
  readonly field: string
  readonly problem: string
}

const text = (most: number) =>
  Schema.String.check(
    Schema.isMaxLength(most, { expected: `at most ${most} characters` }),
    Schema.isPattern(/\S/, { expected: "a text that is not empty" })
  )

/** The fields of the specification. Others are ignored: hosts have their own. */
const Frontmatter = Schema.Struct({
  name: Schema.String.check(
    Schema.isMaxLength(limits.name, { expected: `at most ${limits.name} characters` }),
    Schema.isPattern(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, { expected: "a-z, 0-9 and single hyphens between them" })
  ),
  description: text(limits.description),
  license: Schema.optionalKey(text(limits.license)),
  compatibility: Schema.optionalKey(text(limits.compatibility)),
  metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  "allowed-tools": Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
})

/** The frontmatter of a skill. `allowedTools` is present if the skill restricts its tools. */
export interface Manifest {
  readonly name: string
  readonly description: string
  readonly license?: string | undefined
  readonly compatibility?: string | undefined
  readonly metadata?: { readonly [key: string]: unknown } | undefined
  readonly allowedTools?: ReadonlyArray<string> | undefined
}

const decode = Schema.decodeUnknownResult(Frontmatter, { errors: "all" })

const whole = (problem: string): ReadonlyArray<FieldProblem> => [{ field: "", problem }]

/** The text of a scalar: the failsafe schema has no other. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** A YAML node as plain data with all scalars as texts, or the problem. */
const toPlain = (yaml: Yaml, node: unknown, depth: number): Result.Result<unknown, string> => {
  if (depth > limits.depth) return Result.fail(`nested deeper than ${limits.depth}`)
  if (node === null || node === undefined) return Result.succeed("")
  if (yaml.isAlias(node)) return Result.fail("aliases (*name) are not supported; write the value out")
  if (yaml.isScalar(node)) return Result.succeed(textOf(node.value))
  if (yaml.isSeq(node)) {
    return Result.all(node.items.map((item) => toPlain(yaml, item, depth + 1)))
  }
  if (!yaml.isMap(node)) return Result.fail("not a text, a list or a map")
  const entries = new Map<string, unknown>()
  for (const { key, value } of node.items) {
    if (!yaml.isScalar(key)) return Result.fail("a key that is not a text")
    const name = textOf(key.value)
    if (entries.has(name)) return Result.fail(`the key ${JSON.stringify(name)} is there twice`)
    const plain = toPlain(yaml, value, depth + 1)
    if (Result.isFailure(plain)) return plain
    entries.set(name, plain.success)
  }
  return Result.succeed(Object.fromEntries(entries))
}

const indicators = /[-?:,[\]{}#&*!|>'"%@`]/g

/** Parses YAML. The failsafe schema has only texts: no dates, no numbers, no custom types. */
const parseYaml = (yaml: Yaml, source: string): Result.Result<unknown, string> => {
  const marks = source.match(indicators)?.length ?? 0
  if (marks > limits.indicators) return Result.fail(`more than ${limits.indicators} characters of punctuation`)
  return Result.flatMap(
    Result.try({
      try: () =>
        yaml.parseDocument(source, { schema: "failsafe", logLevel: "silent", uniqueKeys: false, prettyErrors: false }),
      catch: () => "it can't be parsed"
    }),
    (document) => {
      const [error] = document.errors
      return error === undefined ? toPlain(yaml, document.contents, 0) : Result.fail(error.message)
    }
  )
}

/** Splits `Read Bash(git add:*)` at blanks or commas, but not within parentheses. */
const entriesOf = (value: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  typeof value === "string"
    ? (value.match(/[^\s,()]+(?:\([^)]*\))?|\([^)]*\)/g) ?? [])
    : value.map((one) => one.trim()).filter((one) => one !== "")

/** Separates a file's frontmatter, if it has any, from the rest. */
const splitFile = (
  file: string
): { readonly yaml: string; readonly body: string; readonly bodyLine: number } | undefined => {
  const lines = file.replace(/^\ufeff/, "").split("\n", limits.lines)
  if (lines[0]?.trimEnd() !== "---") return undefined
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---")
  if (end < 0) return undefined
  const before = lines.slice(0, end + 1).join("\n").length + (file.startsWith("\ufeff") ? 1 : 0)
  return { yaml: lines.slice(1, end).join("\n"), body: file.slice(before + 1), bodyLine: end + 2 }
}

/** Explains the schema's issues, field by field. */
const explain = (fields: unknown, issue: SchemaIssue.Issue): ReadonlyArray<FieldProblem> =>
  problems(issue).map(({ expected, keys, path }) => {
    if (path === "") return { field: "", problem: "the frontmatter should be a map of fields" }
    return {
      field: path,
      problem: at(fields, keys) === undefined ? "is required and is not there" : `should be ${expected}`
    }
  })

/** A skill's file. `body` is the text after the frontmatter, from line `bodyLine` of the file on (counted from 1). */
export interface SkillFile {
  readonly manifest: Manifest
  readonly body: string
  readonly bodyLine: number
}

const readFile = (
  yaml: Yaml,
  file: string,
  directory: string
): Result.Result<SkillFile, ReadonlyArray<FieldProblem>> => {
  const parts = splitFile(file)
  if (parts === undefined) {
    return Result.fail(
      whole(`should begin with a line "---", YAML of less than ${limits.lines - 1} lines, and a line "---" again`)
    )
  }
  if (parts.yaml.length > limits.frontmatter) {
    return Result.fail(whole(`the frontmatter has more than ${limits.frontmatter} characters`))
  }
  const parsed = parseYaml(yaml, parts.yaml)
  if (Result.isFailure(parsed)) return Result.fail(whole(`the frontmatter is not valid YAML: ${parsed.failure}`))
  const decoded = decode(parsed.success)
  if (Result.isFailure(decoded)) {
    return Result.fail(explain(parsed.success, decoded.failure.issue))
  }
  const { "allowed-tools": allowed, ...fields } = decoded.success
  if (fields.name !== directory) {
    return Result.fail([
      { field: "name", problem: `is "${fields.name}", and should be that of its directory, "${directory}"` }
    ])
  }
  const allowedTools = allowed === undefined ? [] : entriesOf(allowed)
  if (allowedTools.length > limits.tools) {
    return Result.fail([{ field: "allowed-tools", problem: `should be at most ${limits.tools} names` }])
  }
  return Result.succeed({
    manifest: { ...fields, ...(allowedTools.length === 0 ? {} : { allowedTools }) },
    body: parts.body,
    bodyLine: parts.bodyLine
  })
}

/** Reads the beginning of a `SKILL.md`, in a directory of that name. */
export const parse = (file: string, directory: string): Effect.Effect<SkillFile, ReadonlyArray<FieldProblem>> =>
  Effect.flatMap(yaml, (loaded) => Effect.fromResult(readFile(loaded, file, directory)))
