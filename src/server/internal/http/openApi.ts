/** Describes routes by OpenAPI 3.1. */
import type { Json, JsonObject } from "../../../core/Json.ts"
import { isObject } from "../../../core/Json.ts"
import { jsonSchemaOf } from "../../../core/schema/jsonSchema.ts"
import type { Route } from "./route.ts"

/** Moves references of a schema to the components of the document. */
const moveReferences = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(moveReferences)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "$ref" && typeof inner === "string"
        ? inner.replace("#/$defs/", "#/components/schemas/")
        : moveReferences(inner)
    ])
  )
}

const parameterNames = /:(\w+)/g

const problem = {
  description: "A problem (RFC 9457)",
  content: { "application/problem+json": { schema: { type: "object" } } }
}

const describeRoute = (route: Route, schemas: Map<string, Json>): JsonObject => {
  const { body, isOpen, path, query = {}, returns = "application/json", status = 200, summary } = route
  const parameters: Array<Json> = [
    ...[...path.matchAll(parameterNames)].map(([, name = ""]) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string" }
    })),
    ...Object.entries(query).map(([name, description]) => ({
      name,
      in: "query",
      description,
      schema: { type: "string" }
    }))
  ]
  const whole = body === undefined ? undefined : moveReferences(jsonSchemaOf(body))
  const { $defs, ...schema } = isObject(whole) ? whole : {}
  if (isObject($defs)) for (const [name, one] of Object.entries($defs)) schemas.set(name, one)
  return {
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: { "application/json": { schema } } } }),
    responses: {
      [String(status)]: { description: summary, ...(status === 204 ? {} : { content: { [returns]: {} } }) },
      default: problem
    },
    ...(isOpen ? { security: [] } : {})
  }
}

/** Makes the document of routes. */
export const describeApi = (routes: ReadonlyArray<Route>): JsonObject => {
  const schemas = new Map<string, Json>()
  const paths: Record<string, JsonObject> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(parameterNames, "{$1}").replace("*", "{path}")
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeRoute(route, schemas) }
  }
  return {
    openapi: "3.1.0",
    info: { title: "Agents", version: "1" },
    paths,
    components: {
      schemas: Object.fromEntries(schemas),
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } }
    },
    security: [{ bearer: [] }]
  }
}
