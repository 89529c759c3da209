/**
 * Adapts the parameters of any tool to a provider: an object at the root with only the keywords that the provider
 * reads. The tool's own decoder checks the rest.
 */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { geminiSchema } from "./geminiSchema.ts"
import { definitionOf, described, ordered, refPrefix, stringsOf, omitKeys } from "./orderedSchema.ts"
import { fieldsOf } from "./schemaFields.ts"

/**
 * The subset of JSON Schema that a provider reads.
 *
 * - `openai`: OpenAI and compatible servers
 * - `anthropic`: Claude on every platform. Parameter names are letters, digits, `_`, `.` and `-`
 * - `gemini`: Google's OpenAPI subset, without references
 */
export type Dialect = "openai" | "anthropic" | "gemini"

/** Names of parameters that Claude takes. */
export const anthropicKey = /^[a-zA-Z0-9_.-]{1,64}$/

/** The definitions that a schema still refers to. */
const usedDefinitions = (schema: JsonObject, definitions: JsonObject): JsonObject => {
  const usedNames = new Set<string>()
  const todo: Array<Json> = [schema]
  for (let value = todo.pop(); value !== undefined; value = todo.pop()) {
    if (Array.isArray(value)) todo.push(...value)
    if (!isObject(value)) continue
    todo.push(...Object.values(value))
    const { $ref } = value
    const target = definitionOf(value, definitions)
    const name = typeof $ref === "string" ? $ref.slice(refPrefix.length) : ""
    if (target === undefined || usedNames.has(name)) continue
    usedNames.add(name)
    todo.push(target)
  }
  return Object.fromEntries(Object.entries(definitions).filter(([name]) => usedNames.has(name)))
}

/** Keywords that may stand at the root beside the properties. */
const rootKeywords = ["title", "description", "additionalProperties", "patternProperties", "propertyNames"]

const pick = (schema: JsonObject, keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => keys.includes(key)))

/** An object, and nothing beside it. */
const objectAtRoot = (schema: JsonObject, definitions: JsonObject): JsonObject => {
  const { properties, required } = fieldsOf(schema, definitions)
  return {
    type: "object",
    ...pick(definitionOf(schema, definitions) ?? {}, rootKeywords),
    ...pick(schema, rootKeywords),
    properties: Object.fromEntries(properties),
    ...(required.length === 0 ? {} : { required })
  }
}

/** Claude's names of parameters: of the others it is told in words, and it can give them all the same. */
const withClaudeKeys = (schema: JsonObject): JsonObject => {
  const { properties, required } = schema
  const entries = Object.entries(isObject(properties) ? properties : {})
  const others = entries.filter(([key]) => !anthropicKey.test(key))
  if (others.length === 0) return schema
  const needed = stringsOf(required)
  const requiredKeys = needed.filter((key) => anthropicKey.test(key))
  const notes = others.map(
    ([key, value]) => `${JSON.stringify(key)}${needed.includes(key) ? " (required)" : ""}: ${JSON.stringify(value)}`
  )
  const rest = omitKeys(schema, "required", "additionalProperties")
  return described(
    {
      ...rest,
      properties: Object.fromEntries(entries.filter(([key]) => anthropicKey.test(key))),
      ...(requiredKeys.length === 0 ? {} : { required: requiredKeys })
    },
    `There are more properties, with exactly these names and schemas: ${notes.join("; ")}`
  )
}

/** The parameters of a tool as they are sent. */
export const toolSchema = (rawSchema: JsonObject, dialect: Dialect): JsonObject => {
  const { definitions, schema } = ordered(rawSchema)
  const object = objectAtRoot(schema, definitions)
  if (dialect === "gemini") return geminiSchema(object, definitions)
  const root = dialect === "anthropic" ? withClaudeKeys(object) : object
  const $defs = usedDefinitions(root, definitions)
  return Object.keys($defs).length === 0 ? root : { ...root, $defs }
}
