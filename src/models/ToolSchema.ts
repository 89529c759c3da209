/**
 * Checks the JSON Schema of a tool's parameters for parts that a provider rejects.
 *
 * ```ts
 * import { ToolSchema } from "effect-deepagents/models"
 *
 * ToolSchema.check({ type: "object", properties: { when: { type: "array" } } })
 * // ["$.when: an array without items"]
 * ```
 *
 * A check is optional, because every model's layer adapts parameters by {@link fit}. The tool's own decoder checks the
 * constraints that this removes.
 */
import { isObject, type Json, type JsonObject } from "../core/Json.ts"
import { geminiKeywords } from "./internal/schema/geminiSchema.ts"
import {
  combinators,
  definitionOf,
  depthLimit,
  keywords,
  leadsTo,
  notAtRoot,
  types,
  valueKeywords
} from "./internal/schema/orderedSchema.ts"
import { anthropicKey, type Dialect, toolSchema } from "./internal/schema/toolSchema.ts"

export type { Dialect } from "./internal/schema/toolSchema.ts"

/** Adapts parameters to a provider: an object at the root, with only the keywords that the provider reads. */
export const fit = (parameters: JsonObject, dialect: Dialect = "openai"): JsonObject => toolSchema(parameters, dialect)

interface Place {
  readonly schema: Json
  readonly path: string
  readonly depth: number
}

const isWellFormed = (value: Json): boolean => JSON.stringify(value).search(/(?<!\\)(?:\\\\)*\\ud[89a-f]/i) === -1

const rootProblems = (schema: JsonObject, dialect: Dialect): ReadonlyArray<string> => {
  const { properties, type } = schema
  const names = isObject(properties) ? Object.keys(properties) : []
  return [
    ...(type === "object" ? [] : ['$: the type is not "object"']),
    ...(isObject(properties) ? [] : ["$: there are no properties, not even none ({})"]),
    ...notAtRoot.filter((key) => key in schema).map((key) => `$: ${key} at the root`),
    ...names
      .filter((name) => dialect === "anthropic" && !anthropicKey.test(name))
      .map((name) => `$: a name that Claude does not take: ${JSON.stringify(name)}`)
  ]
}

const typeProblems = ({ enum: values, items, type }: JsonObject): ReadonlyArray<string> => {
  const all = Array.isArray(type) ? type : type === undefined ? [] : [type]
  return [
    ...all.filter((one) => !types.has(one)).map((one) => `no such type: ${JSON.stringify(one)}`),
    ...(Array.isArray(type) && type.length === 0 ? ["an empty list of types"] : []),
    ...(all.includes("array") && !isObject(items) ? ["an array without items"] : []),
    ...(Array.isArray(values) && !all.includes("null") && all.length > 0 && values.every((value) => value === null)
      ? ["only null is allowed, and the type is another"]
      : [])
  ]
}

const requiredProblems = ({ properties, required }: JsonObject): ReadonlyArray<string> => {
  if (required === undefined) return []
  if (!Array.isArray(required)) return ["required is not a list"]
  const own = isObject(properties) ? properties : {}
  return [
    ...(new Set(required).size === required.length ? [] : ["required says something twice"]),
    ...required
      .filter((key) => typeof key !== "string" || !Object.hasOwn(own, key))
      .map((key) => `required, and not a property: ${JSON.stringify(key)}`)
  ]
}

const refProblems = (schema: JsonObject, root: JsonObject): ReadonlyArray<string> => {
  const { $ref } = schema
  if ($ref === undefined) return []
  const target = definitionOf(schema, isObject(root["$defs"]) ? root["$defs"] : {})
  if (target === undefined) return [`a reference that leads to no definition: ${JSON.stringify($ref)}`]
  return leadsTo(target, schema, root) ? [`a reference to itself: ${JSON.stringify($ref)}`] : []
}

const geminiProblems = (schema: JsonObject): ReadonlyArray<string> => {
  const { enum: values, type } = schema
  return [
    ...(typeof type === "string" || Array.isArray(schema["anyOf"]) ? [] : ["Gemini wants one type"]),
    ...(Array.isArray(values) && (type !== "string" || values.some((value) => typeof value !== "string"))
      ? ["Gemini lists texts only"]
      : [])
  ]
}

const keywordProblems = (schema: JsonObject, dialect: Dialect): ReadonlyArray<string> =>
  Object.entries(schema).flatMap(([key, value]) => {
    if (!(dialect === "gemini" ? geminiKeywords : keywords).has(key)) return [`an unknown keyword: ${key}`]
    return Object.hasOwn(valueKeywords, key) && valueKeywords[key]?.(value) !== true
      ? [`${key} can't be ${JSON.stringify(value)?.slice(0, 40)}`]
      : []
  })

/** Lists the direct children of a schema. */
const childrenOf = ({ depth, path, schema }: Place): ReadonlyArray<Place> => {
  if (!isObject(schema)) return []
  return Object.entries(schema).flatMap(([key, value]): ReadonlyArray<Place> => {
    const place = (inner: Json, name: string): Place => ({ schema: inner, path: `${path}${name}`, depth: depth + 1 })
    if (key === "properties" || key === "patternProperties" || key === "$defs") {
      return isObject(value) ? Object.entries(value).map(([name, inner]) => place(inner, `.${name}`)) : []
    }
    if (combinators.includes(key) || key === "prefixItems") {
      return Array.isArray(value) ? value.map((inner, index) => place(inner, `.${key}[${index}]`)) : []
    }
    if (key === "items") return [place(value, "[]")]
    if (key === "additionalProperties" && typeof value === "boolean") return []
    return ["additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"].includes(key)
      ? [place(value, `.${key}`)]
      : []
  })
}

/**
 * Lists the parts of a schema that a provider rejects, each with its path. By default it checks for OpenAI and
 * compatible servers.
 */
export const check = (parameters: JsonObject, dialect: Dialect = "openai"): ReadonlyArray<string> => {
  const allProblems: Array<string> = [...rootProblems(parameters, dialect)]
  const todo: Array<Place> = [{ schema: parameters, path: "$", depth: 0 }]
  for (let place = todo.pop(); place !== undefined; place = todo.pop()) {
    const { depth, path, schema } = place
    if (depth > depthLimit * 2) {
      allProblems.push(`${path.slice(0, 100)}…: nested too deep`)
      continue
    }
    if (!isObject(schema)) {
      allProblems.push(`${path}: a schema that is not an object`)
      continue
    }
    const problems = [
      ...keywordProblems(schema, dialect),
      ...typeProblems(schema),
      ...requiredProblems(schema),
      ...refProblems(schema, parameters),
      ...(dialect === "gemini" ? geminiProblems(schema) : [])
    ]
    allProblems.push(...problems.map((problem) => `${path}: ${problem}`))
    todo.push(...childrenOf(place))
  }
  if (allProblems.length === 0 && !isWellFormed(parameters)) allProblems.push("$: half of a surrogate pair")
  return allProblems
}
