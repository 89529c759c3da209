/**
 * The parameters of a tool as every provider accepts them: an object at the root, with nothing beside it.
 */
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import { inlineRoot } from "./jsonSchema.ts"
import { merge } from "./read.ts"

const combinators = ["anyOf", "oneOf", "allOf"]

const branchesOf = (schema: JsonObject, key: string): ReadonlyArray<JsonObject> => {
  const branches = schema[key]
  return Array.isArray(branches)
    ? branches.filter(isObject).map((branch) => inlineRoot(merge(branch, { $defs: schema["$defs"] ?? {} })))
    : []
}

const requiredOf = (schema: JsonObject): ReadonlyArray<Json> => {
  const required = schema["required"]
  return Array.isArray(required) ? required : []
}

/**
 * Gives the schema itself where it is fit, else one object with the properties of all alternatives, of which only those
 * are required that all of them require. The tool's own decoder still refuses a mixture.
 */
export const toolSchema = (given: JsonObject): JsonObject => {
  const schema = inlineRoot(given)
  const isFit =
    schema["type"] === "object" && !combinators.some((key) => key in schema) && isObject(schema["properties"])
  if (isFit) return schema
  const all = branchesOf(schema, "allOf")
  const some = [...branchesOf(schema, "anyOf"), ...branchesOf(schema, "oneOf")]
  const properties: Record<string, Json> = {}
  for (const part of [schema, ...all, ...some]) {
    const own = part["properties"]
    if (isObject(own)) for (const [key, value] of Object.entries(own)) properties[key] ??= value
  }
  const always = [schema, ...all].flatMap(requiredOf)
  const shared = requiredOf(some[0] ?? {}).filter((key) => some.every((branch) => requiredOf(branch).includes(key)))
  const rest = Object.fromEntries(Object.entries(schema).filter(([key]) => !combinators.includes(key)))
  const required = [...new Set([...always, ...shared])]
  return { ...rest, type: "object", properties, ...(required.length === 0 ? {} : { required }) }
}
