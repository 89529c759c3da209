/**
 * The functions of the Berkeley Function Calling Leaderboard as a corpus: every provider takes their schemas, and the
 * expected calls decode to themselves. Some expected calls break the schema of their function: Ajv is the judge.
 *
 * The data is in the package `bfcl-eval` of PyPI (Apache 2.0): `pip download --no-deps bfcl-eval`, unpack it, and set
 * `BFCL_DATA` to its folder `bfcl_eval/data`. Without it, these tests are skipped.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect, Schema } from "effect"
import { Json, Tool, ToolOutput } from "effect-deepagents"
import { ToolSchema } from "effect-deepagents/models"

const folder = process.env["BFCL_DATA"] ?? ""

const Entry = Schema.fromJsonString(
  Schema.Struct({
    id: Schema.String,
    function: Schema.optionalKey(
      Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.String, parameters: Json.JsonObject }))
    )
  })
)
const Answer = Schema.fromJsonString(Schema.Struct({ id: Schema.String, ground_truth: Schema.Json }))

const linesOf = (path: string) => (existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [])

// The types of Python, Java and JavaScript, as the package's own handlers translate them.
const types: Readonly<Record<string, string>> = {
  dict: "object",
  HashMap: "object",
  tuple: "array",
  ArrayList: "array",
  Array: "array",
  float: "number",
  double: "number",
  long: "integer",
  char: "string",
  any: "string",
  String: "string",
  Boolean: "boolean"
}

const translate = (schema: Json.Json): Json.Json =>
  Array.isArray(schema)
    ? schema.map(translate)
    : Json.isObject(schema)
      ? Object.fromEntries(
          Object.entries(schema).map(([key, value]) => [
            key,
            key === "type" && typeof value === "string" ? (types[value] ?? value) : translate(value)
          ])
        )
      : schema

/** The first of the accepted values at each place. `""` and null stand for an argument that may be missing. */
const argumentsOf = (expected: Json.JsonObject): Json.JsonObject =>
  Object.fromEntries(
    Object.entries(expected).flatMap(([key, values]) => {
      const value = Array.isArray(values) ? values.find((one) => one !== "" && one !== null) : values
      return value === undefined ? [] : [[key, plain(value)]]
    })
  )
const plain = (value: Json.Json): Json.Json =>
  Array.isArray(value) ? value.map(plain) : Json.isObject(value) ? argumentsOf(value) : value

describe.runIf(folder !== "")("the functions of BFCL", () => {
  const files = folder === "" ? [] : readdirSync(folder).filter((name) => /^BFCL_v\d+_.*\.json$/.test(name))
  const readEntries = (name: string) => {
    const answers = new Map(
      linesOf(join(folder, "possible_answer", name)).map((line) => {
        const { ground_truth, id } = Schema.decodeUnknownSync(Answer)(line)
        return [id, ground_truth] as const
      })
    )
    return linesOf(join(folder, name)).flatMap((line) => {
      if (!line.startsWith("{") || !line.includes('"function"')) return []
      const { function: functions = [], id } = Schema.decodeUnknownSync(Entry)(line)
      return [{ id, functions, expected: answers.get(id) ?? [] }]
    })
  }
  const entries = files.flatMap(readEntries)

  for (const dialect of ["openai", "anthropic", "gemini"] as const)
    it(`have schemas that ${dialect} takes, translated and as they are`, () => {
      const problems = entries.flatMap(({ functions, id }) =>
        functions.flatMap(({ name, parameters }) =>
          [parameters, translate(parameters)].flatMap((one) =>
            Json.isObject(one)
              ? ToolSchema.check(ToolSchema.fit(one, dialect), dialect).map((problem) => `${id} ${name} ${problem}`)
              : [`${id} ${name}: no object`]
          )
        )
      )
      assert.deepStrictEqual(problems, [])
      assert.isAbove(entries.length, 1_000)
    })

  it.effect("have expected calls that decode to themselves, if their schema allows them", () =>
    Effect.gen(function* () {
      let calls = 0
      const problems: Array<string> = []
      for (const { expected, functions, id } of entries) {
        for (const call of Array.isArray(expected) ? expected : []) {
          if (!Json.isObject(call)) continue
          for (const [name, values] of Object.entries(call)) {
            const found = functions.find((one) => one.name === name)
            const parameters = translate(found?.parameters ?? null)
            if (!Json.isObject(parameters) || !Json.isObject(values)) continue
            const args = argumentsOf(values)
            if (!new Ajv2020({ strict: false, validateSchema: false }).validate(parameters, args)) continue
            calls++
            const tool = Tool.dynamic("f", { description: "", parameters, execute: (given) => JSON.stringify(given) })
            const output = yield* Effect.result(Tool.run(tool, args))
            const said = output._tag === "Failure" ? output.failure.message : ToolOutput.text(output.success)
            if (said !== JSON.stringify(args)) problems.push(`${id} ${name}: ${said} for ${JSON.stringify(args)}`)
          }
        }
      }
      assert.deepStrictEqual(problems, [])
      assert.isAbove(calls, 3_000)
    })
  )
})
