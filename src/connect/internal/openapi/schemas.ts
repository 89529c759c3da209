/**
 * Schemas of a document as the parameters of a tool: one closed object with `$defs`, references kept, bounded in size.
 */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { type FreeName, freeNames } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import { type Document, lookUp } from "./document.ts"

/** The parameters of a tool have so many characters of JSON at most, about. */
const mostCharacters = 16_000

/** Limits of what is kept: schemas that lie deeper become `{}`, or an object or list of anything. */
interface Thrift {
  readonly depth: number
  readonly mostOfDescription: number
}

/** From all that there is to less and less; the last fits whatever there is, but for thousands of parameters. */
const thrifts: ReadonlyArray<Thrift> = [
  { depth: 30, mostOfDescription: 1_000 },
  { depth: 30, mostOfDescription: 0 },
  { depth: 4, mostOfDescription: 0 },
  { depth: 3, mostOfDescription: 0 },
  { depth: 2, mostOfDescription: 0 },
  { depth: 1, mostOfDescription: 0 }
]

/** A parameter, under the name that the model knows it by. */
export interface Field {
  readonly name: string
  readonly schema: Json | undefined
  readonly description: string | undefined
  readonly isRequired: boolean
  /** Properties of it (`""` is itself) that are files, to be named by their paths. */
  readonly files?: ReadonlySet<string> | undefined
}

const valueKeywords = new Set(["enum", "const", "default"])
const plainKeywords = new Set([
  "type",
  "format",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "pattern"
])
const listKeywords = new Set(["anyOf", "oneOf", "allOf"])

const fileField: JsonObject = { type: "string", description: "The path of a file of yours, which is sent" }

/** A definition at one thrift, the same for all operations that refer to it. */
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

/** Facts of the schemas of a document: the names of its definitions, and those that were converted. */
export interface Schemas {
  readonly document: Document
  readonly names: Map<string, string>
  readonly free: FreeName
  readonly converted: Map<Thrift, Map<string, Definition>>
}

export const makeSchemas = (document: Document): Schemas => ({
  document,
  names: new Map(),
  free: freeNames(),
  converted: new Map()
})

/** The conversion of one operation or definition, at one thrift. */
interface Work {
  readonly schemas: Schemas
  readonly thrift: Thrift
  readonly seen: Set<string>
  readonly todo: Array<Reference>
  size: number
}

const makeWork = (schemas: Schemas, thrift: Thrift): Work => ({ schemas, thrift, seen: new Set(), todo: [], size: 0 })

const over = (work: Work): boolean => work.size > mostCharacters

const refer = (work: Work, reference: Reference): void => {
  if (work.seen.has(reference.ref)) return
  work.seen.add(reference.ref)
  work.todo.push(reference)
}

const nameOf = ({ free, names }: Schemas, ref: string): string => {
  const known = names.get(ref)
  if (known !== undefined) return known
  const last = ref.slice(ref.lastIndexOf("/") + 1)
  const clean = last.replaceAll(/[^A-Za-z0-9_]/g, "_").slice(0, 50) || "schema"
  // A name of `Object.prototype` would be found in objects that do not have it.
  const base = clean in {} ? `${clean}_schema` : clean
  const name = free(base)
  names.set(ref, name)
  return name
}

/** The rest of a schema that lies too deep. */
const stub = (schema: JsonObject): JsonObject => {
  const { type } = schema
  if (type === "array") return { type, items: {} }
  if (typeof type === "string") return { type }
  return isObject(schema["properties"]) ? { type: "object" } : {}
}

const describe = (work: Work, schema: JsonObject): string | undefined => {
  const { description } = schema
  if (typeof description !== "string" || description === "" || work.thrift.mostOfDescription === 0) return undefined
  return cut(description, work.thrift.mostOfDescription)
}

const add = (work: Work, key: string, value: Json): readonly [string, Json] => {
  work.size += key.length + 6 + (typeof value === "string" ? value.length : 4)
  return [key, value]
}

/** The size of a value, about; `undefined` for one that is larger than can be kept, nested without an end, or a circle. */
const valueSize = (value: Json): number | undefined => {
  let size = 0
  const todo: Array<readonly [Json, number]> = [[value, 0]]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const [one, depth] = next
    size += typeof one === "string" ? one.length + 3 : 6
    if (size > mostCharacters || depth > 32) return undefined
    if (Array.isArray(one)) for (const item of one.slice(0, mostCharacters)) todo.push([item, depth + 1])
    else if (isObject(one)) {
      for (const [key, item] of Object.entries(one).slice(0, mostCharacters)) {
        size += key.length + 3
        todo.push([item, depth + 1])
      }
    }
  }
  return size
}

const propertiesOf = (work: Work, value: JsonObject, depth: number): JsonObject => {
  const made: Array<readonly [string, JsonObject]> = []
  for (const [name, inner] of Object.entries(value)) {
    if (over(work)) break
    if (isObject(inner) && inner["readOnly"] === true) continue
    work.size += name.length + 4
    made.push([name, convert(work, inner, depth + 1)])
  }
  return Object.fromEntries(made)
}

/** Keywords of 3.0 that later versions write otherwise. */
const modern = (schema: JsonObject, out: JsonObject): JsonObject => {
  if (
    schema["nullable"] !== true &&
    typeof schema["exclusiveMinimum"] !== "boolean" &&
    typeof schema["exclusiveMaximum"] !== "boolean"
  ) {
    return out
  }
  let made: JsonObject = out
  for (const [flag, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"]
  ] as const) {
    if (typeof schema[flag] !== "boolean") continue
    const { [flag]: _flag, [bound]: limit, ...rest } = made
    made = {
      ...rest,
      ...(limit === undefined ? {} : schema[flag] === true ? { [flag]: limit } : { [bound]: limit })
    }
  }
  if (schema["nullable"] !== true) return made
  const { anyOf, enum: values, type } = made
  return {
    ...made,
    ...(typeof type === "string" ? { type: [type, "null"] } : {}),
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}),
    ...(Array.isArray(anyOf) ? { anyOf: [...anyOf, { type: "null" }] } : {})
  }
}

const convert = (work: Work, schema: Json | undefined, depth: number): JsonObject => {
  work.size += 4
  if (!isObject(schema) || over(work)) return {}
  const { $ref } = schema
  if (typeof $ref === "string") {
    const target = lookUp(work.schemas.document, $ref)
    if (target === undefined) return {}
    if (depth >= work.thrift.depth) return stub(target)
    const name = nameOf(work.schemas, $ref)
    refer(work, { name, ref: $ref, depth })
    const description = describe(work, schema)
    work.size += name.length + 20 + (description?.length ?? 0)
    return { $ref: `#/$defs/${name}`, ...(description === undefined ? {} : { description }) }
  }
  if (depth > work.thrift.depth) return stub(schema)
  const out: Array<readonly [string, Json]> = []
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (value === undefined) continue
    if (plainKeywords.has(key) || valueKeywords.has(key)) {
      const size = valueSize(value)
      if (size === undefined) continue
      work.size += size
      out.push([key, value])
    } else if (key === "properties" && isObject(value)) {
      out.push(add(work, key, propertiesOf(work, value, depth)))
    } else if (key === "items" || (key === "additionalProperties" && isObject(value))) {
      out.push(add(work, key, convert(work, value, depth + 1)))
    } else if (key === "additionalProperties" && typeof value === "boolean") out.push(add(work, key, value))
    else if (listKeywords.has(key) && Array.isArray(value) && value.length > 0) {
      // Members of documents overlap, the more so where they are cut: exactly one would hardly ever fit.
      const wide = key === "oneOf" ? "anyOf" : key
      if (wide !== key && wide in schema) continue
      out.push(
        add(
          work,
          wide,
          value.map((one) => (over(work) ? {} : convert(work, one, depth + 1)))
        )
      )
    }
  }
  const description = describe(work, schema)
  if (description !== undefined) out.push(add(work, "description", description))
  const made: JsonObject = Object.fromEntries(out)
  const { properties, required } = schema
  if (!Array.isArray(required)) return modern(schema, made)
  const own = made["properties"]
  const needed = required.filter(
    (name) => typeof name === "string" && (isObject(own) ? Object.hasOwn(own, name) : properties === undefined)
  )
  for (const name of needed) work.size += String(name).length + 3
  return modern(schema, needed.length === 0 ? made : { ...made, required: [...new Set(needed)] })
}

/** A body of several parts, in which some are files. */
const withFiles = (made: JsonObject, files: ReadonlySet<string> | undefined): JsonObject => {
  if (files === undefined) return made
  if (files.has("")) return fileField
  const { properties } = made
  if (!isObject(properties)) return made
  return {
    ...made,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, schema]) =>
        files.has(name)
          ? [name, isObject(schema) && schema["type"] === "array" ? { type: "array", items: fileField } : fileField]
          : [name, schema]
      )
    )
  }
}

/** Thrifts from here on count depth over references, so that a definition differs from place to place. */
const isShared = (thrift: Thrift): boolean => thrift.depth >= 30

const define = (work: Work, { depth, ref }: Reference): JsonObject => {
  const { schemas, thrift } = work
  const target = lookUp(schemas.document, ref)
  if (!isShared(thrift)) return convert(work, target, depth + 1)
  const known = schemas.converted.get(thrift) ?? new Map<string, Definition>()
  schemas.converted.set(thrift, known)
  const own = makeWork(schemas, thrift)
  const made = known.get(ref) ?? { schema: convert(own, target, 0), size: own.size, refs: own.todo }
  known.set(ref, made)
  work.size += made.size
  for (const reference of made.refs) refer(work, reference)
  return made.schema
}

const attempt = (schemas: Schemas, fields: ReadonlyArray<Field>, thrift: Thrift) => {
  const { document } = schemas
  const work = makeWork(schemas, thrift)
  work.size = 80
  const properties = fields.map(({ description, files, name, schema }): readonly [string, JsonObject] => {
    work.size += name.length + 8
    // A body of parts is written out here, since its files are told apart.
    const target =
      files === undefined || !isObject(schema) || typeof schema["$ref"] !== "string"
        ? schema
        : lookUp(document, schema["$ref"])
    const made = withFiles(convert(work, target, 0), files)
    const said = description === undefined ? undefined : cut(description, thrift.mostOfDescription === 0 ? 200 : 500)
    if (said !== undefined) work.size += said.length + 16
    return [name, said === undefined || said === "" ? made : { ...made, description: said }]
  })
  const definitions: Array<readonly [string, JsonObject]> = []
  for (let at = 0; at < work.todo.length && !over(work); at++) {
    const next = work.todo[at]
    if (next === undefined) break
    work.size += next.name.length + 6
    definitions.push([next.name, define(work, next)])
  }
  if (over(work)) return undefined
  const required = fields.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  const parameters: JsonObject = {
    type: "object",
    properties: Object.fromEntries(properties),
    required,
    additionalProperties: false,
    ...(definitions.length === 0 ? {} : { $defs: Object.fromEntries(definitions) })
  }
  return parameters
}

/** The parameters of a tool, as whole as they fit. */
export const parametersOf = (schemas: Schemas, fields: ReadonlyArray<Field>): JsonObject => {
  for (const thrift of thrifts) {
    const parameters = attempt(schemas, fields, thrift)
    if (parameters !== undefined) return parameters
  }
  // Hundreds of parameters, or one name of thousands of characters: those that must be there.
  const required = fields.filter(({ isRequired }) => isRequired).slice(0, 100)
  return {
    type: "object",
    properties: Object.fromEntries(
      required.map(({ name, schema }) => [name, isObject(schema) ? stub(schema) : { type: "string" }])
    ),
    required: required.map(({ name }) => name)
  }
}
