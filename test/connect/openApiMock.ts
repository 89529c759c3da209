/**
 * A service made from its document, by OpenAPI's rules and not by the library's code: it routes by `paths`, and reads
 * queries, forms and parts.
 */
import { type Handler, json } from "../web/pages.ts"

export interface Seen {
  readonly operation: string
  readonly path: string
  readonly parameters: Readonly<Record<string, string>>
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly headers: Headers
  readonly body: unknown
}

export interface Document {
  readonly paths: Readonly<Record<string, object>>
}

const escape = (text: string) => text.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`)

const routesOf = (document: Document) =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, given]: readonly [string, unknown]) => {
      if (!/^(?:get|put|post|delete|patch|head)$/.test(method)) return []
      const names = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = ""]) => name)
      const pattern = new RegExp(`^${escape(path).replaceAll(/\{[^}]*\}/g, "([^/]+)")}$`)
      const operation = (given as { operationId?: string }).operationId ?? `${method} ${path}`
      return [{ operation, method: method.toUpperCase(), pattern, names }]
    })
  )

const bodyOf = async (request: Request): Promise<unknown> => {
  const type = request.headers.get("content-type") ?? ""
  if (request.body === null || type === "") return undefined
  if (/json/.test(type)) return request.json()
  if (/urlencoded/.test(type)) return [...new URLSearchParams(await request.text())]
  if (!/multipart/.test(type)) return request.text()
  const parts = [...(await request.formData())]
  return Promise.all(
    parts.map(async ([name, part]) => [
      name,
      typeof part === "string" ? part : { file: part.name, text: await part.text() }
    ])
  )
}

/** A handler for a document. `seen` has its requests in order. */
export const mock = (document: Document, respond: (seen: Seen) => Response | undefined = () => undefined) => {
  const seen: Array<Seen> = []
  const routes = routesOf(document)
  const handler: Handler = async (request) => {
    const url = new URL(request.url)
    // Of two matching routes, the route with fewer parameters wins.
    const [route] = routes
      .filter(({ method, pattern }) => method === request.method && pattern.test(url.pathname))
      .sort((left, right) => left.names.length - right.names.length)
    if (route === undefined) return json({ message: "no such route" }, { status: 404 })
    const values = route.pattern.exec(url.pathname)?.slice(1) ?? []
    const one: Seen = {
      operation: route.operation,
      path: url.pathname,
      parameters: Object.fromEntries(route.names.map((name, at) => [name, decodeURIComponent(values[at] ?? "")])),
      query: [...url.searchParams],
      headers: request.headers,
      body: await bodyOf(request)
    }
    seen.push(one)
    return respond(one) ?? json({ ok: true })
  }
  return { seen, handler }
}

type Schema = Readonly<Record<string, unknown>>

const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The least value that a tool's schema accepts: required fields only. */
export const sample = (given: unknown, root: Schema, depth = 0): unknown => {
  if (!isSchema(given) || depth > 20) return "text"
  const { $ref, default: preset, enum: values, type } = given
  if (typeof $ref === "string") return sample((root["$defs"] as Schema)[$ref.slice("#/$defs/".length)], root, depth + 1)
  if (preset !== undefined && preset !== null) return preset
  if ("const" in given) return given["const"]
  if (Array.isArray(values)) return values[0]
  for (const key of ["oneOf", "anyOf"]) {
    const members = given[key]
    if (Array.isArray(members) && ![type].flat().includes("object")) return sample(members[0], root, depth + 1)
  }
  if (Array.isArray(given["allOf"]) && type === undefined) {
    const all: ReadonlyArray<unknown> = given["allOf"].map((one) => sample(one, root, depth + 1))
    return all.every(isSchema) ? Object.assign({}, ...all) : all[0]
  }
  const kind: unknown = Array.isArray(type) ? type[0] : type
  switch (kind) {
    case "object":
    case undefined: {
      if (kind === undefined && !isSchema(given["properties"])) return "text"
      const branch = [given["anyOf"], given["oneOf"]].find(Array.isArray)?.[0] as Schema | undefined
      const own = isSchema(given["properties"]) ? given["properties"] : {}
      const properties: Schema = { ...(isSchema(branch?.["properties"]) ? branch["properties"] : {}), ...own }
      const required = [
        ...((given["required"] ?? []) as Array<string>),
        ...((branch?.["required"] ?? []) as Array<string>)
      ]
      return Object.fromEntries(
        [...new Set(required)].map((name) => [name, sample(properties[name] ?? {}, root, depth + 1)])
      )
    }
    case "array": {
      const least = typeof given["minItems"] === "number" ? given["minItems"] : 1
      return Array.from({ length: least }, () => sample(given["items"], root, depth + 1))
    }
    case "integer":
    case "number":
      return typeof given["minimum"] === "number" ? given["minimum"] : 1
    case "boolean":
      return true
    case "null":
      return null
    default: {
      const text = given["format"] === "date-time" ? "2026-01-01T00:00:00Z" : "a text/of 40 characters, ü included.."
      const least = typeof given["minLength"] === "number" ? given["minLength"] : 0
      const most = typeof given["maxLength"] === "number" ? given["maxLength"] : 1_000
      return text.padEnd(least, "x").slice(0, most)
    }
  }
}
