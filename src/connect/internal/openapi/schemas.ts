/**
 * Converts schemas of a document to the parameters of a tool: one closed object with `$defs`, bounded in size.
 */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { type FreeName, freeNames } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import { type Document, lookUp } from "./document.ts"

/** Approximate maximum of characters of the parameters of a tool, as JSON. */
const maxCharacters = 16_000

/** Limits of a conversion. A deeper schema becomes `{}`, or an object or list of anything. */
interface Limits {
  readonly depth: number
  readonly description: number
}

/** Limits from wide to narrow. The first result that fits is used. */
const allLimits: ReadonlyArray<Limits> = [
  { depth: 30, description: 1_000 },
  ...[30, 4, 3, 2, 1].map((depth) => ({ depth, description: 0 }))
]

/** A parameter with its name for the model. */
export interface Field {
  readonly name: string
  readonly schema: Json | undefined
  readonly description: string | undefined
  readonly isRequired: boolean
  /** Properties that are files (`""` for the parameter itself). The model names files by path. */
  readonly files?: ReadonlySet<string> | undefined
}

const fileField: JsonObject = { type: "string", description: "The path of a file of yours, which is sent" }

/** A converted definition. Operations share it. */
interface Definition {
  readonly schema: JsonObject
  readonly size: number
  readonly refs: ReadonlyArray<Reference>
}

interface Reference {
  readonly name: string
  readonly ref: string
  readonly depth: number
}

/** The schemas of a document: names of definitions, and converted definitions. */
export interface Schemas {
  readonly document: Document
  readonly names: Map<string, string>
  readonly free: FreeName
  readonly converted: Map<Limits, Map<string, Definition>>
}

export const makeSchemas = (document: Document): Schemas => ({
  document,
  names: new Map(),
  free: freeNames(),
  converted: new Map()
})

/** The conversion of one operation or definition. */
interface Work {
  readonly schemas: Schemas
  readonly limits: Limits
  readonly seen: Set<string>
  readonly todo: Array<Reference>
  size: number
}

const makeWork = (schemas: Schemas, limits: Limits, size = 0): Work => ({
  schemas,
  limits,
  seen: new Set(),
  todo: [],
  size
})

const isFull = (work: Work): boolean => work.size > maxCharacters

const addReference = (work: Work, reference: Reference): void => {
  if (work.seen.has(reference.ref)) return
  work.seen.add(reference.ref)
  work.todo.push(reference)
}

/** Names a definition. Names of `Object.prototype` are avoided, since every object has them. */
const nameDefinition = ({ free, names }: Schemas, ref: string): string => {
  const knownName = names.get(ref)
  if (knownName !== undefined) return knownName
  const last = ref.slice(ref.lastIndexOf("/") + 1)
  const clean = last.replaceAll(/[^A-Za-z0-9_]/g, "_").slice(0, 50) || "schema"
  const name = free(clean in {} ? `${clean}_schema` : clean)
  names.set(ref, name)
  return name
}

/** Reduces a schema that is too deep to its type. */
const stubSchema = (schema: JsonObject): JsonObject => {
  const { type } = schema
  if (type === "array") return { type, items: {} }
  if (typeof type === "string") return { type }
  return isObject(schema["properties"]) ? { type: "object" } : {}
}

const describeSchema = ({ limits }: Work, { description }: JsonObject): string | undefined =>
  typeof description !== "string" || description === "" || limits.description === 0
    ? undefined
    : cut(description, limits.description)

type Entry = readonly [string, Json]

const addEntry = (work: Work, key: string, value: Json): Entry => {
  work.size += key.length + 6 + (typeof value === "string" ? value.length : 4)
  return [key, value]
}

/** Estimates the size of a value. `undefined` for a value that is too large, too deep, or circular. */
const measureValue = (value: Json): number | undefined => {
  let size = 0
  const todo: Array<readonly [Json, number]> = [[value, 0]]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const [one, depth] = next
    size += typeof one === "string" ? one.length + 3 : 6
    if (size > maxCharacters || depth > 32) return undefined
    if (Array.isArray(one)) for (const item of one.slice(0, maxCharacters)) todo.push([item, depth + 1])
    else if (isObject(one)) {
      for (const [key, item] of Object.entries(one).slice(0, maxCharacters)) {
        size += key.length + 3
        todo.push([item, depth + 1])
      }
    }
  }
  return size
}

/** Converts the booleans of `exclusiveMinimum` and `exclusiveMaximum` in OpenAPI 3.0 to numbers. */
const convertBound = (
  schema: JsonObject,
  out: JsonObject,
  flag: "exclusiveMinimum" | "exclusiveMaximum",
  bound: "minimum" | "maximum"
): JsonObject => {
  if (typeof schema[flag] !== "boolean") return out
  const { [flag]: _flag, [bound]: limit, ...rest } = out
  return limit === undefined ? rest : { ...rest, [schema[flag] ? flag : bound]: limit }
}

/** Converts keywords of OpenAPI 3.0 to JSON Schema. */
const convertOldKeywords = (schema: JsonObject, out: JsonObject): JsonObject => {
  const bounded = convertBound(
    schema,
    convertBound(schema, out, "exclusiveMinimum", "minimum"),
    "exclusiveMaximum",
    "maximum"
  )
  if (schema["nullable"] !== true) return bounded
  const { anyOf, enum: values, type } = bounded
  return {
    ...bounded,
    ...(typeof type === "string" ? { type: [type, "null"] } : {}),
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}),
    ...(Array.isArray(anyOf) ? { anyOf: [...anyOf, { type: "null" }] } : {})
  }
}

/** Converts the value of a keyword. `undefined` drops the keyword. */
type Keyword = (work: Work, key: string, value: Json, depth: number, schema: JsonObject) => Entry | undefined

const keepValue: Keyword = (work, key, value) => {
  const size = measureValue(value)
  if (size === undefined) return undefined
  work.size += size
  return [key, value]
}

const convertChild: Keyword = (work, key, value, depth) => addEntry(work, key, convert(work, value, depth + 1))

const convertProperties: Keyword = (work, key, value, depth) => {
  if (!isObject(value)) return undefined
  const properties: Array<readonly [string, JsonObject]> = []
  for (const [name, inner] of Object.entries(value)) {
    if (isFull(work)) break
    if (isObject(inner) && inner["readOnly"] === true) continue
    work.size += name.length + 4
    properties.push([name, convert(work, inner, depth + 1)])
  }
  return addEntry(work, key, Object.fromEntries(properties))
}

/** Converts a union. `oneOf` becomes `anyOf`, since shortened members overlap. */
const convertMembers: Keyword = (work, key, value, depth, schema) => {
  const wide = key === "oneOf" ? "anyOf" : key
  if (!Array.isArray(value) || value.length === 0 || (wide !== key && wide in schema)) return undefined
  const members = value.map((one) => (isFull(work) ? {} : convert(work, one, depth + 1)))
  return addEntry(work, wide, members)
}

const plainKeywords =
  "type format minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems uniqueItems pattern enum const default"

const keywords = new Map<string, Keyword>([
  ...plainKeywords.split(" ").map((key): [string, Keyword] => [key, keepValue]),
  ["properties", convertProperties],
  ["items", convertChild],
  [
    "additionalProperties",
    (work, key, value, ...rest) =>
      isObject(value)
        ? convertChild(work, key, value, ...rest)
        : typeof value === "boolean"
          ? addEntry(work, key, value)
          : undefined
  ],
  ["anyOf", convertMembers],
  ["oneOf", convertMembers],
  ["allOf", convertMembers]
])

const convertReference = (work: Work, schema: JsonObject, ref: string, depth: number): JsonObject => {
  const target = lookUp(work.schemas.document, ref)
  if (target === undefined) return {}
  if (depth >= work.limits.depth) return stubSchema(target)
  const name = nameDefinition(work.schemas, ref)
  addReference(work, { name, ref, depth })
  const description = describeSchema(work, schema)
  work.size += name.length + 20 + (description?.length ?? 0)
  return { $ref: `#/$defs/${name}`, ...(description === undefined ? {} : { description }) }
}

/** Lists the required properties that the converted schema has. */
const requiredOf = ({ properties, required }: JsonObject, own: Json | undefined): ReadonlyArray<string> =>
  (Array.isArray(required) ? required : [])
    .filter((name): name is string => typeof name === "string")
    .filter((name) => (isObject(own) ? Object.hasOwn(own, name) : properties === undefined))

const convert = (work: Work, schema: Json | undefined, depth: number): JsonObject => {
  work.size += 4
  if (!isObject(schema) || isFull(work)) return {}
  const { $ref } = schema
  if (typeof $ref === "string") return convertReference(work, schema, $ref, depth)
  if (depth > work.limits.depth) return stubSchema(schema)
  const out: Array<Entry> = []
  for (const [key, value] of Object.entries(schema)) {
    const entry = value === undefined ? undefined : keywords.get(key)?.(work, key, value, depth, schema)
    if (entry !== undefined) out.push(entry)
  }
  const description = describeSchema(work, schema)
  if (description !== undefined) out.push(addEntry(work, "description", description))
  const converted: JsonObject = Object.fromEntries(out)
  const required = requiredOf(schema, converted["properties"])
  for (const name of required) work.size += name.length + 3
  return convertOldKeywords(
    schema,
    required.length === 0 ? converted : { ...converted, required: [...new Set(required)] }
  )
}

/** Replaces the files of a multipart body by their paths. */
const replaceFiles = (schema: JsonObject, files: ReadonlySet<string> | undefined): JsonObject => {
  const { properties } = schema
  if (files?.has("") === true) return fileField
  if (files === undefined || !isObject(properties)) return schema
  const pathOf = (property: Json | undefined) =>
    isObject(property) && property["type"] === "array" ? { type: "array", items: fileField } : fileField
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, files.has(name) ? pathOf(property) : property])
    )
  }
}

/** Converts a definition. With narrow limits, it depends on the depth of its reference, so it is not shared. */
const convertDefinition = (work: Work, { depth, ref }: Reference): JsonObject => {
  const { limits, schemas } = work
  const target = lookUp(schemas.document, ref)
  if (limits.depth < 30) return convert(work, target, depth + 1)
  const definitions = schemas.converted.get(limits) ?? new Map<string, Definition>()
  schemas.converted.set(limits, definitions)
  const own = makeWork(schemas, limits)
  const definition = definitions.get(ref) ?? { schema: convert(own, target, 0), size: own.size, refs: own.todo }
  definitions.set(ref, definition)
  work.size += definition.size
  for (const reference of definition.refs) addReference(work, reference)
  return definition.schema
}

/** Converts a parameter. A body with files is written in place, since its schema changes. */
const convertField = (work: Work, { description, files, name, schema }: Field): readonly [string, JsonObject] => {
  work.size += name.length + 8
  const ref = files === undefined || !isObject(schema) ? undefined : schema["$ref"]
  const target = typeof ref === "string" ? lookUp(work.schemas.document, ref) : schema
  const converted = replaceFiles(convert(work, target, 0), files)
  if (description === undefined || description === "") return [name, converted]
  const text = cut(description, work.limits.description === 0 ? 200 : 500)
  work.size += text.length + 16
  return [name, { ...converted, description: text }]
}

/** Converts parameters. `undefined` if they are too large within the limits. */
const convertFields = (schemas: Schemas, fields: ReadonlyArray<Field>, limits: Limits): JsonObject | undefined => {
  const work = makeWork(schemas, limits, 80)
  const properties = fields.map((field) => convertField(work, field))
  const definitions: Array<readonly [string, JsonObject]> = []
  // The conversion of a definition may add more references.
  for (const reference of work.todo) {
    if (isFull(work)) break
    work.size += reference.name.length + 6
    definitions.push([reference.name, convertDefinition(work, reference)])
  }
  if (isFull(work)) return undefined
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    required: fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    additionalProperties: false,
    ...(definitions.length === 0 ? {} : { $defs: Object.fromEntries(definitions) })
  }
}

/** Makes the parameters of a tool, in as much detail as fits. */
export const makeParameters = (schemas: Schemas, fields: ReadonlyArray<Field>): JsonObject => {
  for (const limits of allLimits) {
    const parameters = convertFields(schemas, fields, limits)
    if (parameters !== undefined) return parameters
  }
  // Hundreds of parameters, or a very long name: only required parameters stay.
  const required = fields.filter(({ isRequired }) => isRequired).slice(0, 100)
  return {
    type: "object",
    properties: Object.fromEntries(
      required.map(({ name, schema }) => [name, isObject(schema) ? stubSchema(schema) : { type: "string" }])
    ),
    required: required.map(({ name }) => name)
  }
}
