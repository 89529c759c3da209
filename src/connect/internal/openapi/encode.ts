/** Encodes the arguments of a tool as a request: path, query, headers, body. */
import * as Effect from "effect/Effect"
import * as HttpBody from "effect/http/HttpBody"
import { Backend } from "../../../core/Backend.ts"
import { isObject, type Json, type JsonObject, stringify } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { encodePart } from "../../../support/text/percent.ts"
import type { ServiceError } from "../../ServiceError.ts"
import type { Call } from "../connectors/http.ts"
import type { Body, Parameter, Target } from "./operations.ts"

type Pairs = ReadonlyArray<readonly [string, string]>

/** Makes an error for an argument that can't be sent. */
type Fail = (problem: string) => ServiceError

const textOf = (value: Json): string => (typeof value === "string" ? value : stringify(value))

/** Encodes nested values with brackets, as PHP, Rails and Stripe do: `a[b][0]=c`. */
const encodeBrackets = (name: string, value: Json): Pairs => {
  const pairs: Array<readonly [string, string]> = []
  const todo: Array<readonly [string, Json]> = [[name, value]]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const [at, one] = next
    if (Array.isArray(one)) todo.push(...one.map((item, index) => [`${at}[${index}]`, item] as const).reverse())
    else if (isObject(one)) {
      todo.push(
        ...Object.entries(one)
          .map(([key, item]) => [`${at}[${key}]`, item] as const)
          .reverse()
      )
    } else pairs.push([at, one === null ? "" : textOf(one)])
  }
  return pairs
}

const separators: { readonly [style: string]: string } = { spaceDelimited: " ", pipeDelimited: "|" }

/** Removes nulls from lists and objects, which these styles can't express (RFC 6570, 2.3). */
const removeNulls = (value: Json): Json =>
  Array.isArray(value)
    ? value.filter((one) => one !== null)
    : isObject(value)
      ? Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null))
      : value

const isEmpty = (value: Json): boolean =>
  value === null || (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0)

const encodeQuery = ({ explode, isJson, name, style }: Parameter, input: Json): Pairs => {
  if (isJson) return [[name, stringify(input)]]
  if (style === "deepObject") return encodeBrackets(name, input)
  const value = removeNulls(input)
  if (isEmpty(value)) return []
  if (Array.isArray(value)) {
    if (explode) return value.map((one) => [name, textOf(one)])
    return [[name, value.map(textOf).join(valueAt(separators, style) ?? ",")]]
  }
  if (!isObject(value)) return [[name, textOf(value)]]
  const entries = Object.entries(value).map(([key, one]): readonly [string, string] => [key, textOf(one)])
  return explode ? entries : [[name, entries.flat().join(valueAt(separators, style) ?? ",")]]
}

/** Encodes a value in the style `simple`, `label` or `matrix`. */
const encodeSimple = ({ explode, name, style }: Parameter, value: Json, escape: (text: string) => string): string => {
  const separator = style === "label" ? (explode ? "." : ",") : style === "matrix" && explode ? ";" : ","
  const parts = Array.isArray(value)
    ? value.map((one) => (style === "matrix" && explode ? `${name}=${escape(textOf(one))}` : escape(textOf(one))))
    : isObject(value)
      ? Object.entries(value).map(([key, one]) => `${escape(key)}${explode ? "=" : ","}${escape(textOf(one))}`)
      : [escape(textOf(value))]
  const joined = parts.join(separator)
  if (style === "label") return `.${joined}`
  if (style !== "matrix") return joined
  const hasNames = explode && (Array.isArray(value) || isObject(value))
  return hasNames ? `;${joined}` : `;${name}=${joined}`
}

/** Returns true for `.` and `..`, escaped or not: a URL resolves them. */
const isStep = (segment: string): boolean => /^(?:\.|%2e){1,2}$/i.test(segment)

const encodePath = (target: Target, args: JsonObject, fail: Fail): string | ServiceError => {
  const values = new Map<string, string>()
  for (const parameter of target.parameters) {
    if (parameter.in !== "path") continue
    const input = Object.hasOwn(args, parameter.argument) ? args[parameter.argument] : undefined
    const value = input === undefined ? null : removeNulls(input)
    if (value === "" || isEmpty(value)) {
      return fail(`the argument ${parameter.argument} is part of the address, so it can't be empty`)
    }
    values.set(parameter.name, encodeSimple(parameter, value, encodePart))
  }
  const segments = target.path
    .split("/")
    .map((part) => part.replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => values.get(name) ?? whole))
  const missing = segments.find((segment) => /[{}]/.test(segment))
  if (missing !== undefined) return fail(`the document does not say what ${missing} of its path is`)
  if (segments.some(isStep)) return fail('"." and ".." can\'t be a part of the address')
  return segments.join("/")
}

const readFile = Effect.fnUntraced(function* (path: Json | undefined, fail: Fail) {
  if (typeof path !== "string") return yield* fail("a file is given by its path, a text")
  const backend = yield* Effect.serviceOption(Backend)
  if (backend._tag === "None") return yield* fail("there are no files here: provide a Backend to the run")
  const [file] = yield* backend.value.download([path])
  if (file === undefined || !file.ok) {
    return yield* fail(`the file ${path} can't be read: ${file === undefined ? "it is not there" : file.error.message}`)
  }
  return { bytes: file.value, name: path.slice(path.lastIndexOf("/") + 1) || "file" }
})

const encodeMultipart = Effect.fnUntraced(function* (body: Body, value: Json, fail: Fail) {
  if (!isObject(value)) return yield* fail(`the argument ${body.argument} is an object with a property for each part`)
  const form = new FormData()
  for (const [key, entry] of Object.entries(value)) {
    for (const one of Array.isArray(entry) ? entry : [entry]) {
      if (!body.files.has(key)) {
        form.append(key, textOf(one))
        continue
      }
      const { bytes, name } = yield* readFile(one, fail)
      form.append(key, new Blob([new Uint8Array(bytes)]), name)
    }
  }
  return HttpBody.formData(form)
})

const encodeBody = (body: Body, value: Json, fail: Fail): Effect.Effect<HttpBody.HttpBody, ServiceError> => {
  switch (body.kind) {
    case "json":
      return Effect.succeed(HttpBody.text(stringify(value), body.contentType))
    case "text":
      return Effect.succeed(HttpBody.text(textOf(value), body.contentType))
    case "bytes":
      return Effect.map(readFile(value, fail), ({ bytes }) => HttpBody.uint8Array(bytes, body.contentType))
    case "multipart":
      return encodeMultipart(body, value, fail)
    case "form": {
      if (!isObject(value)) return Effect.fail(fail(`the argument ${body.argument} is an object`))
      const pairs = Object.entries(value).flatMap(([key, one]): Pairs => {
        if (!Array.isArray(one) || body.bracketed.has(key) || one.some((item) => typeof item === "object")) {
          return encodeBrackets(key, one)
        }
        return one.map((item) => [key, textOf(item)])
      })
      const text = new URLSearchParams(pairs.map(([key, one]): [string, string] => [key, one])).toString()
      return Effect.succeed(HttpBody.text(text, "application/x-www-form-urlencoded"))
    }
  }
}

/** Makes a request without its credential. */
export const makeRequest = Effect.fnUntraced(function* (
  target: Target,
  base: string,
  args: JsonObject,
  subject: Pick<Call, "service" | "operation">,
  fail: Fail
) {
  const path = encodePath(target, args, fail)
  if (typeof path !== "string") return yield* path
  const query: Array<readonly [string, string]> = []
  const headers: Record<string, string> = {}
  for (const parameter of target.parameters) {
    const value = Object.hasOwn(args, parameter.argument) ? args[parameter.argument] : undefined
    if (value === undefined || parameter.in === "path") continue
    if (parameter.in === "query") query.push(...encodeQuery(parameter, value))
    else {
      const text = parameter.isJson ? stringify(value) : encodeSimple(parameter, value, (part) => part)
      // A line break would begin another header.
      if (/[^\t\x20-\x7e]/.test(text))
        return yield* fail(`the argument ${parameter.argument} has characters that a header can't have`)
      headers[parameter.name] = text
    }
  }
  const { body } = target
  const input = body === undefined || !Object.hasOwn(args, body.argument) ? undefined : args[body.argument]
  const encodedBody = body === undefined || input === undefined ? undefined : yield* encodeBody(body, input, fail)
  const call: Call = {
    ...subject,
    method: target.method,
    url: `${base.replace(/\/+$/, "")}${path}`,
    query,
    headers,
    ...(encodedBody === undefined ? {} : { body: encodedBody })
  }
  return call
})
