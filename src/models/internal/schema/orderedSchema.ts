/**
 * Normalises any JSON Schema: only known keywords with valid values, and only references to existing definitions.
 *
 * It drops dangling and circular references, and unbounded nesting.
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { follow, pathOf } from "../../../support/json/jsonSchema.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { wellFormed, wellFormedJson } from "../turn/wellFormed.ts"

/** The greatest depth of a schema. Deeper down anything is valid. */
export const depthLimit = 64

export const types = new Set<Json>(["string", "number", "integer", "boolean", "object", "array", "null"])

const isCount = (value: Json): boolean => Number.isSafeInteger(value) && Number(value) >= 0
const isNumber = (value: Json): boolean => typeof value === "number" && Number.isFinite(value)
const isText = (value: Json): boolean => typeof value === "string"
const isPattern = (value: Json): boolean =>
  typeof value === "string" && Result.isSuccess(Result.try(() => new RegExp(value, "u")))

/** Keywords with a scalar value, and the check of that value. */
export const valueKeywords: { readonly [keyword: string]: (value: Json) => boolean } = {
  title: isText,
  description: isText,
  default: () => true,
  examples: Array.isArray,
  const: () => true,
  enum: (value) => Array.isArray(value) && value.length > 0,
  format: isText,
  pattern: isPattern,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && Number(value) > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  uniqueItems: (value) => typeof value === "boolean",
  contentEncoding: isText,
  contentMediaType: isText
}

const nodeKeywords = ["items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"]
const listKeywords = ["anyOf", "oneOf", "allOf", "prefixItems"]

export const combinators = ["anyOf", "oneOf", "allOf"]

/** Keywords that providers refuse at the root, which is to be nothing but an object. */
export const notAtRoot: ReadonlyArray<string> = [...combinators, "$ref", "enum", "const", "not", "if", "then", "else"]

/** All that a schema in good order may have. */
export const keywords: ReadonlySet<string> = new Set([
  "type",
  "required",
  "properties",
  "patternProperties",
  "$ref",
  "$defs",
  ...Object.keys(valueKeywords),
  ...nodeKeywords,
  ...listKeywords
])

export const omitKeys = (schema: JsonObject, ...keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)))

/** The schema with one more sentence in its description. */
export const described = (schema: JsonObject, note: string): JsonObject => {
  const before = schema["description"]
  return { ...schema, description: typeof before === "string" && before !== "" ? `${before} ${note}` : note }
}

/** Gives the nodes right below a node: its reference, and the members of its combinators. */
function* same(node: JsonObject): Iterable<JsonObject> {
  for (const key of combinators) {
    const members = node[key]
    if (Array.isArray(members)) for (const member of members) if (isObject(member)) yield member
  }
}

/** Steps through references and combinators that are followed: nobody means more. */
const stepLimit = 1_000

/** Definitions that a schema may have, at most. Nothing refers to further ones. */
const definitionLimit = 500

/**
 * Reports whether a schema says that it is another one, or an alternative or a part of it, or goes on for so long that
 * it can't be told. Where both are the same, nothing is said by that.
 */
export const leadsTo = (from: JsonObject, target: JsonObject, root: JsonObject): boolean => {
  const seen = new Set<JsonObject>()
  const todo = [from]
  for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
    if (node === target || seen.size > stepLimit) return true
    if (seen.has(node)) continue
    seen.add(node)
    const path = pathOf(node["$ref"])
    const next = path === undefined ? undefined : follow(root, path)
    if (next !== undefined) todo.push(next)
    for (const member of same(node)) todo.push(member)
  }
  return false
}

const typeOf = (schema: JsonObject): Json | undefined => {
  const { properties, type } = schema
  const all = (Array.isArray(type) ? [...new Set(type)] : [type]).filter((one) => one !== undefined && types.has(one))
  const nullable = schema["nullable"] === true && all.length > 0 && !all.includes("null") ? [...all, "null"] : all
  if (nullable.length > 0) return nullable.length === 1 ? nullable[0] : nullable.filter((one) => one !== undefined)
  return isObject(properties) ? "object" : undefined
}

/** Reports whether a value of this type may be an array. */
const isList = (type: Json | undefined): boolean => type === "array" || (Array.isArray(type) && type.includes("array"))

/** Recognises `Schema.Struct({})` of Effect, an object without constraints. */
const isEmptyStruct = ({ not }: JsonObject): boolean =>
  isObject(not) && not["type"] === "null" && Object.keys(not).length === 1

export const stringsOf = (value: Json | undefined): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : []

const isOpen = (schema: Json | undefined): boolean => isObject(schema) && Object.keys(schema).length === 0

/** Reports whether a reordered schema says the same as before, no more and no less. Definitions are not looked at. */
const saysAll = (before: Json, after: Json): boolean => {
  if (before === true) return isOpen(after)
  if (Array.isArray(before)) {
    return (
      Array.isArray(after) &&
      after.length === before.length &&
      before.every((one, index) => saysAll(one, after[index] ?? null))
    )
  }
  if (!isObject(before) || !isObject(after)) return before === after
  return (
    Object.entries(after).every(([key, value]) => Object.hasOwn(before, key) || (key === "items" && isOpen(value))) &&
    Object.entries(before).every(([key, value]) => {
      if (!Object.hasOwn(after, key)) return false
      return key === "$ref" || Object.hasOwn(valueKeywords, key) || saysAll(value, after[key] ?? null)
    })
  )
}

/** Reports whether a list allows only null for another type. No provider accepts that. */
const isOnlyNull = (values: Json | undefined, type: Json | undefined): boolean =>
  Array.isArray(values) && type !== undefined && ![type].flat().includes("null") && values.every((one) => one === null)

/**
 * A schema in good order: only keywords that are known, of the right kind, and references to definitions that are
 * there.
 */
export const ordered = (root: JsonObject): { readonly schema: JsonObject; readonly definitions: JsonObject } => {
  const names = new Map<JsonObject, string>()
  const usedNames = new Set<string>()
  const todo: Array<JsonObject> = []

  const nameOf = (target: JsonObject, path: ReadonlyArray<string>): string => {
    const definitionName = names.get(target)
    if (definitionName !== undefined) return definitionName
    const base = (path.at(-1) ?? "root").replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 48) || "schema"
    let name = base
    for (let number = 2; usedNames.has(name); number++) name = `${base}_${number}`
    names.set(target, name)
    usedNames.add(name)
    todo.push(target)
    return name
  }

  /**
   * `of` is the definition that this node is a part of without anything in between. Gives nothing for a reference that
   * says no more than that a schema is itself.
   */
  const visit = (node: Json | undefined, depth: number, of: JsonObject | undefined): JsonObject | undefined => {
    if (!isObject(node) || depth > depthLimit) return {}
    const path = pathOf(node["$ref"])
    if (path === undefined) {
      return nodeOf(
        isEmptyStruct(node) ? { type: "object", properties: {}, ...omitKeys(node, "not") } : node,
        depth,
        of
      )
    }
    const target = follow(root, path)
    if (target !== undefined && leadsTo(target, of ?? node, root)) return undefined
    const isTooMuch = target !== undefined && !names.has(target) && names.size >= definitionLimit
    const { description } = node
    const own = typeof description === "string" ? { description: wellFormed(description) } : {}
    return target === undefined || isTooMuch ? own : { $ref: `#/$defs/${nameOf(target, path)}`, ...own }
  }

  const visitAll = (nodes: ReadonlyArray<Json>, depth: number, of: JsonObject | undefined): ReadonlyArray<JsonObject> =>
    nodes.flatMap((node) => {
      const schema = node === false ? undefined : visit(node, depth, of)
      return schema === undefined ? [] : [schema]
    })

  /** Keeps the place of each member: `false`, and what can't be told, become anything. */
  const visitTuple = (nodes: ReadonlyArray<Json>, depth: number): ReadonlyArray<JsonObject> =>
    nodes.map((node) => visit(node, depth, undefined) ?? {})

  const visitNamed = (nodes: JsonObject, depth: number): JsonObject =>
    Object.fromEntries(
      Object.entries(nodes)
        .filter(([, node]) => node !== false)
        .map(([key, node]) => [wellFormed(key), visit(node, depth, undefined) ?? {}])
    )

  /**
   * Drops `not` and `if`, and makes `oneOf` an `anyOf`, where less is left of their schemas: they would refuse more.
   */
  const keepTrue = (node: JsonObject, ownKeywords: Record<string, Json>): void => {
    const isTrue = (key: string): boolean =>
      ownKeywords[key] === undefined || saysAll(node[key] ?? null, ownKeywords[key])
    if (!isTrue("not")) delete ownKeywords["not"]
    if (!isTrue("if")) for (const key of ["if", "then", "else"]) delete ownKeywords[key]
    if (isTrue("oneOf")) return
    ownKeywords["anyOf"] ??= ownKeywords["oneOf"] ?? []
    delete ownKeywords["oneOf"]
  }

  const keywordOf = (key: string, value: Json, depth: number, of: JsonObject | undefined): Json | undefined => {
    if (valueAt(valueKeywords, key)?.(value) === true) return wellFormedJson(value)
    if (nodeKeywords.includes(key)) {
      if (isObject(value)) return visit(value, depth + 1, undefined) ?? {}
      return key === "additionalProperties" && typeof value === "boolean" ? value : undefined
    }
    if (!listKeywords.includes(key) || !Array.isArray(value)) return undefined
    const members = key === "prefixItems" ? visitTuple(value, depth + 1) : visitAll(value, depth + 1, of)
    return members.length > 0 ? members : undefined
  }

  const nodeOf = (node: JsonObject, depth: number, of: JsonObject | undefined): JsonObject => {
    const ownKeywords: Record<string, Json> = {}
    const type = typeOf(node)
    if (type !== undefined) ownKeywords["type"] = type
    for (const [key, value] of Object.entries(node)) {
      const own = keywordOf(key, value, depth, of)
      if (own !== undefined) ownKeywords[key] = own
    }
    if (isOnlyNull(ownKeywords["enum"], type)) delete ownKeywords["enum"]
    keepTrue(node, ownKeywords)
    const { items, patternProperties, properties, required } = node
    if (Array.isArray(items) && items.length > 0) ownKeywords["prefixItems"] = visitTuple(items, depth + 1)
    if (isList(type)) ownKeywords["items"] ??= {}
    if (isObject(patternProperties)) {
      const sound = Object.entries(patternProperties).filter(([pattern]) => isPattern(pattern))
      ownKeywords["patternProperties"] = visitNamed(Object.fromEntries(sound), depth + 1)
    }
    if (isObject(properties)) {
      const own = visitNamed(properties, depth + 1)
      const named = [...new Set(stringsOf(required).map(wellFormed))].filter((key) => Object.hasOwn(own, key))
      ownKeywords["properties"] = own
      if (named.length > 0) ownKeywords["required"] = named
    }
    return ownKeywords
  }

  const schema = visit(root, 0, root) ?? {}
  const definitions: Record<string, Json> = {}
  for (let target = todo.shift(); target !== undefined; target = todo.shift()) {
    definitions[names.get(target) ?? ""] = visit(target, 1, target) ?? {}
  }
  return { schema, definitions }
}

export const refPrefix = "#/$defs/"

export const definitionOf = (schema: JsonObject, definitions: JsonObject): JsonObject | undefined => {
  const ref = schema["$ref"]
  const target = typeof ref === "string" ? valueAt(definitions, ref.slice(refPrefix.length)) : undefined
  return isObject(target) ? target : undefined
}
