/** Makes forms from the JSON Schema of an answer. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { cleanLine } from "../../../support/text/clean.ts"

/** A field of a form. The person writes `json` for a schema without a simpler form. */
export interface Field {
  readonly id: string
  readonly label: string
  readonly kind: "text" | "one" | "many" | "boolean" | "number" | "json"
  readonly options: ReadonlyArray<string>
  readonly isRequired: boolean
}

const enumOf = (schema: JsonObject): ReadonlyArray<string> | undefined => {
  const { enum: values } = schema
  if (Array.isArray(values) && values.every((value) => typeof value === "string")) return values
  const members = schema["anyOf"] ?? schema["oneOf"]
  if (!Array.isArray(members)) return undefined
  const constants = members.flatMap((member): ReadonlyArray<string> => {
    if (!isObject(member)) return []
    if (typeof member["const"] === "string") return [member["const"]]
    return enumOf(member) ?? []
  })
  return constants.length === members.length ? constants : undefined
}

const fieldOf = (id: string, label: string, schema: JsonObject, isRequired: boolean): Field => {
  const name = typeof schema["title"] === "string" ? cleanLine(schema["title"]) : label
  const field = { id, label: name, isRequired, options: [] }
  const options = enumOf(schema)
  if (options !== undefined) return { ...field, kind: "one", options }
  switch (typeof schema["type"] === "string" ? schema["type"] : "") {
    case "string":
      return { ...field, kind: "text" }
    case "boolean":
      return { ...field, kind: "boolean", options: ["yes", "no"] }
    case "number":
    case "integer":
      return { ...field, kind: "number" }
    case "array": {
      const items = isObject(schema["items"]) ? enumOf(schema["items"]) : undefined
      return items === undefined ? { ...field, kind: "json" } : { ...field, kind: "many", options: items }
    }
    default:
      return { ...field, kind: "json" }
  }
}

/** Gives the fields of a form. A single value is a field without a name. */
export const fieldsOf = (schema: JsonObject, label: string): ReadonlyArray<Field> => {
  const { properties, required } = schema
  if (schema["type"] !== "object" || !isObject(properties)) return [fieldOf("", label, schema, true)]
  const needed = Array.isArray(required) ? required : []
  return Object.entries(properties).map(([id, value]) =>
    fieldOf(id, id, isObject(value) ? value : {}, needed.includes(id))
  )
}

const parseNumber = (text: string): Json | undefined => {
  const numeric = Number(text)
  return text.trim() !== "" && Number.isFinite(numeric) ? numeric : undefined
}

/** Reads the text of a field. Returns its value or its problem. */
export const readField = (
  { kind, label }: Field,
  text: string,
  json: (text: string) => Json | undefined
): { readonly value: Json } | { readonly problem: string } => {
  if (kind === "number") {
    const value = parseNumber(text)
    return value === undefined ? { problem: `${label}: write a number` } : { value }
  }
  if (kind === "json") {
    const value = json(text)
    return value === undefined ? { problem: `${label}: write JSON, such as ["a", "b"]` } : { value }
  }
  return { value: text }
}

/** Joins the values of all fields to an answer. */
export const answerOf = (fields: ReadonlyArray<Field>, values: ReadonlyMap<string, Json>): Json =>
  fields.length === 1 && fields[0]?.id === ""
    ? (values.get("") ?? "")
    : Object.fromEntries([...values].filter(([id]) => fields.some((field) => field.id === id)))
