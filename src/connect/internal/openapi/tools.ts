/** Makes tools of operations: one for each, or a pair that searches and calls. */
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Schema from "effect/Schema"
import { JsonObject } from "../../../core/Json.ts"
import * as Tool from "../../../core/Tool.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import { once } from "../../../support/effect/once.ts"
import { normaliseName } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import { failure, send } from "../connectors/http.ts"
import { renderAnswer } from "./answers.ts"
import type { Document } from "./document.ts"
import { makeRequest } from "./encode.ts"
import type { Definition } from "./operations.ts"
import { makeParameters, type Schemas } from "./schemas.ts"
import { findNearest, findOperations } from "./search.ts"
import { accessOf, type Auth } from "./security.ts"

/** An operation of a document. `name` names its tool; `id` is its `operationId`, else its method and path. */
export interface Operation {
  readonly id: string
  readonly name: string
  readonly method: string
  readonly path: string
  readonly tags: ReadonlyArray<string>
  readonly summary: string
  readonly isDeprecated: boolean
}

/** Facts that all operations of a document share. */
export interface Setting<R> {
  readonly document: Document
  readonly schemas: Schemas
  readonly service: string
  readonly base: string
  /** True if the caller set the address, which replaces all servers of the document. */
  readonly isMoved: boolean
  readonly trusted: ReadonlySet<string>
  readonly auth: Auth<R> | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly outputLimit: number
}

/** An operation with its tool. `run` calls it without an approval: the caller has asked. */
export interface ToolCandidate<R> {
  readonly operation: Operation
  readonly description: string
  readonly isReading: boolean
  readonly tool: () => Tool.Tool<HttpClient | R> | Tool.NeedingApproval<HttpClient | R>
  readonly run: (args: JsonObject) => Effect.Effect<string, ToolError.ToolError, HttpClient | R>
}

const maxDescription = 1_000

const describeOperation = ({ description, isDeprecated, method, path, summary }: Definition): string => {
  const whole = summary === "" || description.startsWith(summary) ? description : `${summary}\n${description}`
  const text = cut(whole.trim(), maxDescription)
  return `${isDeprecated ? "Deprecated. " : ""}${text === "" ? "An operation of the service." : text}\n${method} ${path}`
}

const makeExecute = <R>(
  { auth, base, document, headers, isMoved, service, trusted }: Setting<R>,
  { id, target }: Definition
) => {
  const subject = { service, operation: id }
  const access = accessOf(document, auth, target.security)
  const server = target.server === undefined || isMoved ? base : (URL.parse(target.server, base)?.href ?? base)
  const isTrusted = trusted.has(new URL(server).origin)
  return (args: JsonObject) =>
    Effect.gen(function* () {
      const call = yield* makeRequest(target, server, args, subject, (problem) =>
        failure(subject, "InvalidRequest", problem)
      )
      const answer = isTrusted
        ? yield* send({ ...call, headers: { ...call.headers, ...headers } }, access)
        : yield* send<never>(call, undefined)
      return renderAnswer(target, answer)
    }).pipe(
      Effect.mapError((error) =>
        error.status === 401 && access !== undefined && !isTrusted
          ? failure(
              subject,
              "NotConnected",
              `the credential is not sent to ${server}; its origin is to be named in "origins"`
            )
          : error
      )
    )
}

/** Makes the tool of an operation lazily. */
export const makeTool = <R>(setting: Setting<R>, definition: Definition, operation: Operation): ToolCandidate<R> => {
  const { method } = definition
  const isReading = method === "GET" || method === "HEAD"
  const description = describeOperation(definition)
  const parameters = once(() => makeParameters(setting.schemas, definition.fields))
  const shape = once(() => ({
    description,
    parameters: parameters(),
    annotations: {
      readOnly: isReading,
      destructive: !isReading && method !== "POST",
      idempotent: method !== "POST" && method !== "PATCH",
      openWorld: true,
      addresses: []
    },
    outputLimit: setting.outputLimit
  }))
  // Decoders of large schemas are slow, and most tools of a large document are never called.
  const plain = once(() => Tool.dynamic(operation.name, { ...shape(), execute: makeExecute(setting, definition) }))
  const tool = once(() => {
    const common = { ...shape(), name: operation.name, prepare: (args: JsonObject) => plain().prepare(args) }
    return isReading ? common : { ...common, needsApproval: true as const }
  })
  return {
    operation,
    description,
    isReading,
    tool,
    run: (args) => Effect.suspend(() => Effect.map(Tool.run(plain(), args), ToolOutput.text))
  }
}

/** Makes two tools for all operations: `search` finds operations, `call` calls one. */
export const makePair = <R>(
  all: ReadonlyArray<ToolCandidate<R>>,
  service: string,
  prefix: string,
  outputLimit: number
) => {
  const byName = new Map(all.map((one) => [one.operation.name, one]))
  // Two operations with the same normalised name are ambiguous: neither is called by it.
  const folded = new Map<string, ToolCandidate<R> | undefined>()
  for (const one of all) {
    const key = normaliseName(one.operation.name)
    folded.set(key, folded.has(key) ? undefined : one)
  }
  const search = Tool.make(`${prefix}_search`, {
    description: `Finds operations of ${service} (it has ${all.length}) by what they do, with the schemas of their arguments. Call one by ${prefix}_call.`,
    parameters: {
      query: Schema.String.annotate({ description: 'What is to be done, such as "list open issues"' }),
      limit: Schema.optionalKey(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })).annotate({
          description: "How many: 5 unless told"
        })
      )
    },
    annotations: { readOnly: true, idempotent: true },
    execute: ({ limit = 5, query }) =>
      Effect.sync(() => {
        const hits = findOperations(all, query, limit)
        if (hits.length === 0) return "No operation fits. Try other words: the thing, and what is done with it."
        return hits
          .map(
            ({ description, operation, tool }) =>
              `${operation.name}\n${description}\narguments: ${JSON.stringify(tool().parameters)}`
          )
          .join("\n\n")
      })
  })
  const findOperation = (name: string) => byName.get(name) ?? folded.get(normaliseName(name))
  const call = Tool.make(`${prefix}_call`, {
    description: `Calls an operation of ${service}, by its name as ${prefix}_search gave it, with arguments of its schema.`,
    parameters: {
      operation: Schema.String,
      arguments: Schema.optionalKey(JsonObject.annotate({ description: "By the operation's schema" }))
    },
    annotations: { openWorld: true },
    outputLimit,
    needsApproval: ({ operation }): boolean => findOperation(operation)?.isReading === false,
    execute: ({ arguments: args = {}, operation: name }) => {
      const one = findOperation(name)
      if (one !== undefined) return one.run(args)
      const near = findNearest(
        name,
        all.map(({ operation }) => operation.name)
      )
      const hint = near === undefined ? `Look it up by ${prefix}_search.` : `Did you mean ${near}?`
      return Effect.fail(ToolError.make(`${service} has no operation ${JSON.stringify(cut(name, 100))}. ${hint}`))
    }
  })
  return [search, call] as const
}
