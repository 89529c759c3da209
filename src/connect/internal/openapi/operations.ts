/** Finds the operations of a document: their addresses, parameters and tool names. */
import type { HttpMethod } from "effect/http/HttpMethod"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import type { FreeName } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { type Document, listAt, objectAt, resolve, textAt } from "./document.ts"
import type { Field } from "./schemas.ts"

/** A parameter outside of the body. `argument` is its name for the model. */
export interface Parameter {
  readonly argument: string
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly style: string
  readonly explode: boolean
  readonly isJson: boolean
  readonly isRequired: boolean
}

export interface Body {
  readonly kind: "json" | "form" | "multipart" | "text" | "bytes"
  readonly contentType: string
  readonly argument: string
  readonly isRequired: boolean
  readonly files: ReadonlySet<string>
  /** Properties of a form whose lists are encoded with brackets. */
  readonly bracketed: ReadonlySet<string>
}

export interface Target {
  readonly method: HttpMethod
  readonly path: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly body: Body | undefined
  /** The server of this operation, if it differs. */
  readonly server: string | undefined
  readonly security: ReadonlyArray<Json> | undefined
}

/** An operation of the document. */
export interface Definition {
  readonly id: string
  readonly method: HttpMethod
  readonly path: string
  readonly tags: ReadonlyArray<string>
  readonly summary: string
  readonly description: string
  readonly isDeprecated: boolean
  readonly fields: ReadonlyArray<Field>
  readonly target: Target
}

const methods = ["get", "put", "post", "delete", "patch", "head"] as const
const verbs = { get: "GET", put: "PUT", post: "POST", delete: "DELETE", patch: "PATCH", head: "HEAD" } as const

/** Headers that the model may not set: credentials, headers of HTTP itself, and other methods. */
const forbiddenHeaders = new Set([
  "accept",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "x-http-method",
  "x-http-method-override",
  "x-method-override"
])

const maxParameters = 500

const isPlace = (place: string | undefined): place is Parameter["in"] =>
  place === "path" || place === "query" || place === "header"

/** Makes a unique name of a parameter that every provider accepts. */
const makeArgumentName = (name: string, place: string, argumentNames: Set<string>): string => {
  const base = name.replaceAll(/[^A-Za-z0-9_.-]/g, "_").slice(0, 50) || "parameter"
  let argumentName = base
  if (argumentNames.has(argumentName)) argumentName = `${base}_${place}`
  for (let count = 2; argumentNames.has(argumentName); count++) argumentName = `${base}_${count}`
  argumentNames.add(argumentName)
  return argumentName
}

const isFile = (schema: JsonObject | undefined): boolean =>
  schema !== undefined &&
  (schema["format"] === "binary" ||
    schema["contentMediaType"] === "application/octet-stream" ||
    schema["contentEncoding"] === "binary")

const kinds: ReadonlyArray<readonly [Body["kind"], RegExp]> = [
  ["json", /^application\/(?:[\w.+-]+\+)?json\b/i],
  ["form", /^application\/x-www-form-urlencoded\b/i],
  ["multipart", /^multipart\/form-data\b/i],
  ["text", /^(?:text\/|application\/(?:sdp|xml|yaml|graphql))/i],
  ["bytes", /./]
]

/** Recognises files that are declared as plain text named `file`, as in Stripe's document. */
const isNamedFile = (name: string, schema: JsonObject | undefined): boolean =>
  name === "file" && schema?.["type"] === "string" && schema["format"] === undefined && schema["enum"] === undefined

const filesOf = (document: Document, schema: JsonObject | undefined): ReadonlySet<string> =>
  new Set(
    Object.entries(objectAt(schema, "properties") ?? {}).flatMap(([name, entry]) => {
      const property = resolve(document, entry)
      const items = resolve(document, property?.["items"])
      const members = [...listAt(property, "anyOf"), ...listAt(property, "oneOf")]
      const isAny =
        isFile(property) ||
        isFile(items) ||
        isNamedFile(name, property) ||
        members.some((one) => isFile(resolve(document, one)))
      return isAny ? [name] : []
    })
  )

const bodyOf = (document: Document, operation: JsonObject, argumentNames: Set<string>) => {
  const body = resolve(document, operation["requestBody"])
  const content = objectAt(body, "content")
  if (content === undefined) return undefined
  for (const [kind, pattern] of kinds) {
    const contentType = Object.keys(content).find((type) => pattern.test(type))
    if (contentType === undefined) continue
    const media = objectAt(content, contentType)
    const schema = media?.["schema"]
    const encoding = objectAt(media, "encoding") ?? {}
    const bracketed = Object.keys(encoding).filter((name) => objectAt(encoding, name)?.["style"] === "deepObject")
    const files =
      kind === "multipart" ? filesOf(document, resolve(document, schema)) : new Set(kind === "bytes" ? [""] : [])
    const isRequired = body?.["required"] === true
    const argument = makeArgumentName("body", "request", argumentNames)
    const requestBody: Body = {
      kind,
      contentType: contentType.includes("*") ? "application/octet-stream" : contentType,
      argument,
      isRequired,
      files,
      bracketed: new Set(bracketed)
    }
    const field: Field = {
      name: argument,
      schema: kind === "text" ? { type: "string" } : schema,
      description: body === undefined ? undefined : textAt(body, "description"),
      isRequired,
      ...(kind === "multipart" || kind === "bytes" ? { files } : {})
    }
    return { body: requestBody, field }
  }
  return undefined
}

const defaultStyles = { path: "simple", query: "form", header: "simple" } as const

const parametersOf = (document: Document, item: JsonObject, operation: JsonObject, argumentNames: Set<string>) => {
  const byKey = new Map<string, JsonObject>()
  for (const entry of [...listAt(item, "parameters"), ...listAt(operation, "parameters")].slice(0, maxParameters)) {
    const one = resolve(document, entry)
    if (one !== undefined) byKey.set(`${textAt(one, "in")}:${textAt(one, "name")}`, one)
  }
  return [...byKey.values()].flatMap((one) => {
    const name = textAt(one, "name")
    const place = textAt(one, "in")
    if (name === undefined || !isPlace(place)) return []
    if (place === "header" && (forbiddenHeaders.has(name.toLowerCase()) || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)))
      return []
    const content = Object.values(objectAt(one, "content") ?? {})[0]
    const style = textAt(one, "style") ?? defaultStyles[place]
    const isRequired = one["required"] === true || place === "path"
    const parameter: Parameter = {
      argument: makeArgumentName(name, place, argumentNames),
      name,
      in: place,
      style,
      explode: typeof one["explode"] === "boolean" ? one["explode"] : style === "form",
      isJson: content !== undefined,
      isRequired
    }
    const field: Field = {
      name: parameter.argument,
      schema: content === undefined ? one["schema"] : isObject(content) ? content["schema"] : undefined,
      description: textAt(one, "description"),
      isRequired
    }
    return [{ field, parameter }]
  })
}

/** Reads the address of the first server, with the defaults of its variables. */
export const serverOf = (servers: ReadonlyArray<Json>): string | undefined => {
  const [first] = servers
  if (!isObject(first)) return undefined
  const variables = objectAt(first, "variables")
  return textAt(first, "url")
    ?.slice(0, 2_000)
    .replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => textAt(objectAt(variables, name) ?? {}, "default") ?? whole)
}

/** Lists all operations of a document in order. */
export const operationsOf = (document: Document): ReadonlyArray<Definition> => {
  const { root } = document
  const definitions: Array<Definition> = []
  for (const [path, entry] of Object.entries(objectAt(root, "paths") ?? {})) {
    const item = resolve(document, entry)
    if (item === undefined || !path.startsWith("/")) continue
    for (const method of methods) {
      const operation = objectAt(item, method)
      if (operation === undefined) continue
      const argumentNames = new Set<string>()
      const parameters = parametersOf(document, item, operation, argumentNames)
      const requestBody = bodyOf(document, operation, argumentNames)
      const security = operation["security"] ?? root["security"]
      definitions.push({
        id: textAt(operation, "operationId") ?? `${method} ${path}`,
        method: verbs[method],
        path,
        tags: listAt(operation, "tags").filter((tag) => typeof tag === "string"),
        summary: oneLine(cut(textAt(operation, "summary") ?? "", 300)),
        description: cut(textAt(operation, "description") ?? "", 4_000),
        isDeprecated: operation["deprecated"] === true,
        fields: [...parameters.map(({ field }) => field), ...(requestBody === undefined ? [] : [requestBody.field])],
        target: {
          method: verbs[method],
          path,
          parameters: parameters.map(({ parameter }) => parameter),
          body: requestBody?.body,
          server: serverOf(listAt(operation, "servers")) ?? serverOf(listAt(item, "servers")),
          security: Array.isArray(security) ? security : undefined
        }
      })
    }
  }
  return definitions
}

const maxName = 64

/** Removes `_` at both ends. A regular expression would be slow on long runs of it. */
const trimUnderscores = (text: string): string => {
  let from = 0
  let to = text.length
  while (text[from] === "_") from++
  while (to > from && text[to - 1] === "_") to--
  return text.slice(from, to)
}

/** Makes a unique name of a tool that every provider accepts: up to 64 letters, digits, `_` and `-`. */
export const makeToolName = (id: string, free: FreeName): string => {
  const clean = trimUnderscores(id.replaceAll(/[^A-Za-z0-9_-]+/g, "_"))
  const name = /^[A-Za-z_]/.test(clean) ? clean : `op_${clean}`
  return free(name.length <= maxName ? name : `${name.slice(0, maxName - 9)}_${sha256Sync(id).slice(0, 8)}`, maxName)
}
