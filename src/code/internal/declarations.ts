/** Writes tools as TypeScript declarations, for a model to read. */
import type { ToolDefinition } from "../../core/ChatModel.ts"
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import { membersOf, targetOf } from "../../support/json/jsonSchema.ts"
import { cut } from "../../support/text/text.ts"
import { textTokens } from "../../support/text/tokens.ts"

/** Deeper parts of a schema are shown as `unknown`, and so are parts beyond this number: a schema may contain itself. */
const maxDepth = 6
const maxParts = 1_000

const identifier = /^[A-Za-z_$][\w$]*$/

const keyOf = (name: string): string => (identifier.test(name) ? name : JSON.stringify(name))

/** A comment of one line. A description may be of a stranger: it can't end its comment. */
const noteOf = (text: Json | undefined, length: number): string =>
  typeof text === "string" && text.trim() !== ""
    ? `/** ${cut(text.replaceAll(/\s+/g, " ").trim(), length).replaceAll("*/", "* /")} */ `
    : ""

/** The types of JSON Schema that TypeScript has by the same name. */
const plain: ReadonlySet<string> = new Set(["string", "number", "boolean", "null"])

interface Place {
  readonly root: JsonObject
  readonly depth: number
  /** The parts that may still be shown. */
  readonly budget: { parts: number }
}

const literal = (value: Json): string => cut(JSON.stringify(value), 200)

const unionOf = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ") || "never"

/** The TypeScript type of the values of a JSON Schema. */
const typeOf = (schema: Json | undefined, place?: Place): string => {
  if (schema === false) return "never"
  if (!isObject(schema)) return "unknown"
  const { budget, depth, root } = place ?? { root: schema, depth: 0, budget: { parts: maxParts } }
  if (budget.parts-- <= 0 || depth > maxDepth) return "unknown"
  const below = (one: Json | undefined): string => typeOf(one, { root, depth: depth + 1, budget })
  if (typeof schema["$ref"] === "string") return below(targetOf(schema, root))
  if (schema["const"] !== undefined) return literal(schema["const"])
  if (Array.isArray(schema["enum"])) return unionOf(schema["enum"].map(literal))
  const members = membersOf(schema)
  if (members !== undefined) return unionOf(members.map(below))
  const { allOf, type } = schema
  if (Array.isArray(allOf)) {
    const { allOf: _, ...rest } = schema
    const parts = [...(type === undefined ? [] : [below(rest)]), ...allOf.map(below)]
    return parts.filter((part) => part !== "unknown").join(" & ") || "unknown"
  }
  if (Array.isArray(type)) return unionOf(type.map((one) => below({ ...schema, type: one })))
  if (type === "array") return arrayOf(schema, below)
  if (type === "object" || schema["properties"] !== undefined) return objectOf(schema, below, budget.parts)
  if (type === "integer") return "number"
  return typeof type === "string" && plain.has(type) ? type : "unknown"
}

type Below = (schema: Json | undefined) => string

const arrayOf = ({ items, prefixItems }: JsonObject, below: Below): string => {
  if (Array.isArray(prefixItems)) return `[${prefixItems.map(below).join(", ")}]`
  const item = below(items)
  return /[|&]/.test(item) ? `Array<${item}>` : `${item}[]`
}

const objectOf = ({ additionalProperties, properties, required }: JsonObject, below: Below, most: number): string => {
  const all = Object.entries(isObject(properties) ? properties : {})
  if (all.length > most) return "Record<string, unknown>"
  const needed = Array.isArray(required) ? required : []
  const fields = all.map(([name, one]) => {
    const note = isObject(one) ? noteOf(one["description"], 120) : ""
    return `${note}${keyOf(name)}${needed.includes(name) ? "" : "?"}: ${below(one)}`
  })
  if (fields.length > 0) return `{ ${fields.join("; ")} }`
  if (isObject(additionalProperties)) return `{ [key: string]: ${below(additionalProperties)} }`
  return additionalProperties === false || properties !== undefined ? "{}" : "Record<string, unknown>"
}

/** The declaration of a tool, as a member of `tools`. */
export const declare = ({
  description,
  name,
  parameters
}: Pick<ToolDefinition, "description" | "name" | "parameters">): string =>
  `${noteOf(description, 300)}${keyOf(name)}(args: ${typeOf(parameters)}): Promise<string>`

/** As many declarations as fit into so many tokens, in the order of the tools. */
export const declareWithin = (
  tools: ReadonlyArray<ToolDefinition>,
  budget: number
): { readonly lines: ReadonlyArray<string>; readonly left: number } => {
  const lines: Array<string> = []
  let used = 0
  for (const tool of tools) {
    const line = declare(tool)
    const tokens = textTokens(line)
    if (used + tokens > budget) break
    used += tokens
    lines.push(line)
  }
  return { lines, left: tools.length - lines.length }
}
