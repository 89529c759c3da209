/**
 * Tools from an OpenAPI document: any service that has one (3.0 or 3.1, JSON or YAML) becomes tools of an agent.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Connection, OpenApiTools } from "effect-deepagents/connect"
 *
 * const program = Effect.gen(function* () {
 *   const crm = yield* OpenApiTools.fromUrl("https://crm.example.com/openapi.json", {
 *     include: (operation) => operation.tags.includes("contacts"),
 *     auth: Connection.stored({ service: "CRM", namespace: "tenant/acme" })
 *   })
 *   return Agent.make({ name: "clerk", prompt: "You keep the contacts in order.", tools: crm.tools })
 * })
 * ```
 *
 * A call that only reads (GET, HEAD) runs at once; every other call asks for an approval. The credential never enters the
 * arguments, the result or an error, and goes to the server of the document only.
 */
import * as Effect from "effect/Effect"
import { FileSystem } from "effect/FileSystem"
import type { HttpClient } from "effect/http/HttpClient"
import { isObject } from "../core/Json.ts"
import type * as Tool from "../core/Tool.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { freeNames } from "../support/text/names.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import { send, textOf } from "./internal/connectors/http.ts"
import { type Document, listAt, objectAt, readDocument, resolve, textAt } from "./internal/openapi/document.ts"
import { type Definition, operationsOf, serverOf, makeToolName } from "./internal/openapi/operations.ts"
import { makeSchemas } from "./internal/openapi/schemas.ts"
import { findNearest } from "./internal/openapi/search.ts"
import { type Auth, namesOf, schemesOf } from "./internal/openapi/security.ts"
import { type ToolCandidate, makeTool, makePair, type Operation } from "./internal/openapi/tools.ts"
import * as shapes from "./internal/shapes.ts"
import { OpenApiError } from "./OpenApiError.ts"

export type { Auth, Operation }

/** The options of a document. */
export interface Options<R = never> {
  /** The name of the service in failures and in the names of the search pair; by default the document's title. */
  readonly name?: string | undefined
  /** Operations to include, by id or by a rule; by default all. An unknown id fails. */
  readonly include?: ReadonlyArray<string> | ((operation: Operation) => boolean) | undefined
  /** One {@link Connection} for the credential, or one for each security scheme of the document. */
  readonly auth?: Auth<R> | undefined
  /** Renames the tool of an operation. Names are made legal and unique. */
  readonly names?: ((operation: Operation) => string) | undefined
  /** One tool for each operation, or a pair of tools (`search` and `call`). Default: a pair for more than 40 operations. */
  readonly as?: "operations" | "search" | undefined
  /** Replaces the first server of the document. */
  readonly baseUrl?: string | undefined
  /** More origins (`https://uploads.example.com`) that get the credential, for operations with a server of their own. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** Headers of every request to the service and to `origins`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The number of characters of a response that the model sees: 30,000 by default. */
  readonly outputLimit?: number | undefined
}

/** The tool of an operation. It has `needsApproval` if the operation changes something. */
export type OperationTool<R> = Tool.Tool<HttpClient | R> | Tool.NeedingApproval<HttpClient | R>

/** The tools of a document, and their operations. */
export interface OpenApiTools<R = never> {
  readonly tools: ReadonlyArray<OperationTool<R>>
  readonly operations: ReadonlyArray<Operation>
}

/** A document with more operations becomes a pair of tools by default. */
const maxTools = 40
const shownCharacters = 30_000

const isIncluded = (include: Options["include"], operation: Operation): boolean =>
  include === undefined || (typeof include === "function" ? include(operation) : include.includes(operation.id))

/** Lists the unknown ids of `include`, each with the most similar id. */
const unknownIds = (include: Options["include"], all: ReadonlyArray<Definition>): ReadonlyArray<string> => {
  if (include === undefined || typeof include === "function") return []
  const ids = all.map(({ id }) => id)
  return include
    .filter((id) => !ids.includes(id))
    .map((id) => {
      const similar = findNearest(id, ids)
      return similar === undefined ? JSON.stringify(id) : `${JSON.stringify(id)} (is it ${JSON.stringify(similar)}?)`
    })
}

/** Explains why a document has no tools. */
const explainNothing = (document: Document, all: ReadonlyArray<Definition>): string => {
  const missing = Object.values(objectAt(document.root, "paths") ?? {})
    .filter((item) => resolve(document, item) === undefined)
    .map((item) => (isObject(item) ? textAt(item, "$ref") : undefined))
    .find((ref) => ref !== undefined)
  return all.length > 0 || missing === undefined
    ? "no operation of it is included, so there is no tool"
    : `its paths are in other files (${cut(missing, 100)}), which are not looked for; make one document of them first, with a bundler such as redocly bundle`
}

type Fail = (problem: string) => OpenApiError

/** Finds the address of the service. */
const findBase = (
  { root }: Document,
  from: string | undefined,
  baseUrl: string | undefined,
  fail: Fail
): Effect.Effect<URL, OpenApiError> => {
  const server = baseUrl ?? serverOf(listAt(root, "servers")) ?? (from === undefined ? undefined : "/")
  const base = server === undefined ? null : URL.parse(server, from)
  if (base === null || !/^https?:$/.test(base.protocol)) {
    const problem = `it does not say where the service is (${cut(server ?? "no servers", 100)}); give baseUrl`
    return Effect.fail(fail(problem))
  }
  const variable = /\{[^{}]*\}/.exec(server ?? "")?.[0]
  return variable === undefined
    ? Effect.succeed(base)
    : Effect.fail(fail(`the address of its service has a part without a value, ${cut(variable, 60)}; give baseUrl`))
}

const parseOrigins = (origins: ReadonlyArray<string>, fail: Fail): Effect.Effect<ReadonlyArray<string>, OpenApiError> =>
  Effect.forEach(origins, (origin) => {
    const url = URL.parse(origin)
    return url === null
      ? Effect.fail(fail(`origins: ${JSON.stringify(origin)} is no URL, such as https://uploads.example.com`))
      : Effect.succeed(url.origin)
  })

/** Finds names in `auth` and `include` that the document lacks. */
const findUnknown = <R>(
  document: Document,
  { auth, include }: Options<R>,
  all: ReadonlyArray<Definition>
): string | undefined => {
  const schemes = Object.keys(schemesOf(document))
  const strange = namesOf(auth).filter((name) => !schemes.includes(name))
  if (strange.length > 0) {
    return `auth: it has no security scheme ${strange.join(", ")}; it has ${schemes.join(", ") || "none"}`
  }
  const unknown = unknownIds(include, all)
  return unknown.length === 0 ? undefined : `include: it has no operation ${unknown.slice(0, 5).join(", ")}`
}

const fromDocument = Effect.fnUntraced(function* <R>(
  document: Document,
  label: string,
  from: string | undefined,
  options: Options<R>
) {
  const fail = (problem: string) => new OpenApiError({ document: label, problem })
  const base = yield* findBase(document, from, options.baseUrl, fail)
  const origins = yield* parseOrigins(options.origins ?? [], fail)
  const all = operationsOf(document)
  const unknown = findUnknown(document, options, all)
  if (unknown !== undefined) return yield* fail(unknown)
  const title = textAt(objectAt(document.root, "info") ?? {}, "title")
  const service = oneLine(cut(options.name ?? title ?? "The service", 60))
  const setting = {
    document,
    schemas: makeSchemas(document),
    service,
    base: base.href,
    trusted: new Set([base.origin, ...origins]),
    auth: options.auth,
    isMoved: options.baseUrl !== undefined,
    headers: options.headers ?? {},
    outputLimit: options.outputLimit ?? shownCharacters
  }
  const free = freeNames()
  const candidates = all.flatMap((definition): ReadonlyArray<ToolCandidate<R>> => {
    const { id, isDeprecated, method, path, summary, tags } = definition
    const operation = { id, name: id, method, path, tags, summary, isDeprecated }
    if (!isIncluded(options.include, operation)) return []
    const name = makeToolName(options.names?.(operation) ?? id, free)
    return [makeTool(setting, definition, { ...operation, name })]
  })
  if (candidates.length === 0) return yield* fail(explainNothing(document, all))
  const isPair = options.as === "search" || (options.as === undefined && candidates.length > maxTools)
  const prefix = makeToolName(options.name ?? service, freeNames()).slice(0, 50)
  const tools: ReadonlyArray<OperationTool<R>> = isPair
    ? makePair(candidates, service, prefix, setting.outputLimit)
    : candidates.map(({ tool }) => tool())
  return { tools, operations: candidates.map(({ operation }) => operation) }
})

const refuse = makeEffectCheck("OpenApiTools", shapes.openApiToolsMake, (document, problem) =>
  Effect.fail(new OpenApiError({ document, problem }))
)

/**
 * Makes tools of a document: its value, or its text as JSON or YAML. Fails if it is no OpenAPI document, or if it lacks
 * an operation that the options name. Schemas that tools can't express are left open, and the parameters of a tool have
 * at most 16,000 characters. Operations with files take paths of the run's `Backend`.
 */
export const make = <R = never>(
  document: unknown,
  options: Options<R> = {}
): Effect.Effect<OpenApiTools<R>, OpenApiError> =>
  refuse(options) ??
  Effect.flatMap(readDocument(document, options.name ?? "given"), (read) =>
    fromDocument(read, options.name ?? "given", undefined, options)
  )

/** Makes tools of a document at a URL. Its servers may be relative to the URL. */
export const fromUrl = <R = never>(
  url: string | URL,
  options: Options<R> = {}
): Effect.Effect<OpenApiTools<R>, OpenApiError, HttpClient> =>
  Effect.gen(function* () {
    const refused = refuse(options)
    if (refused !== undefined) return yield* refused
    const from = String(url)
    const label = URL.parse(from)?.host ?? from
    const answer = yield* Effect.mapError(
      send<never>({ service: label, operation: "read the document", method: "GET", url: from }, undefined),
      ({ problem }) => new OpenApiError({ document: label, problem })
    )
    return yield* fromDocument(yield* readDocument(textOf(answer), label), label, from, options)
  })

/** Makes tools of a document in a file. */
export const fromFile = <R = never>(
  path: string,
  options: Options<R> = {}
): Effect.Effect<OpenApiTools<R>, OpenApiError, FileSystem> =>
  Effect.gen(function* () {
    const refused = refuse(options)
    if (refused !== undefined) return yield* refused
    const fs = yield* FileSystem
    const text = yield* Effect.mapError(
      fs.readFileString(path),
      ({ message }) => new OpenApiError({ document: path, problem: message })
    )
    return yield* fromDocument(yield* readDocument(text, path), path, undefined, options)
  })
