/** Tools of operations: one for each, or two that search and call. */
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
import { render } from "./answers.ts"
import type { Document } from "./document.ts"
import { requestOf } from "./encode.ts"
import type { Found } from "./operations.ts"
import { parametersOf, type Schemas } from "./schemas.ts"
import { find, nearest } from "./search.ts"
import { accessOf, type Auth } from "./security.ts"

/**
 * An operation of a document. `name` is that of its tool; `id` its `operationId`, or method and path if it has none.
 *
 */
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
  /** The caller said where the service is, so servers of the document do not count. */
  readonly isMoved: boolean
  readonly trusted: ReadonlySet<string>
  readonly auth: Auth<R> | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly outputLimit: number
}

/** An operation with its tool. `run` does the work, whoever had to decide on it having done so. */
export interface Made<R> {
  readonly operation: Operation
  readonly description: string
  readonly isReading: boolean
  readonly tool: () => Tool.Tool<HttpClient | R> | Tool.NeedingApproval<HttpClient | R>
  readonly run: (args: JsonObject) => Effect.Effect<string, ToolError.ToolError, HttpClient | R>
}

const mostOfDescription = 1_000

const describe = ({ description, isDeprecated, method, path, summary }: Found): string => {
  const whole = summary === "" || description.startsWith(summary) ? description : `${summary}\n${description}`
  const text = cut(whole.trim(), mostOfDescription)
  return `${isDeprecated ? "Deprecated. " : ""}${text === "" ? "An operation of the service." : text}\n${method} ${path}`
}

const executor = <R>(
  { auth, base, document, headers, isMoved, service, trusted }: Setting<R>,
  { id, target }: Found
) => {
  const known = { service, operation: id }
  const access = accessOf(document, auth, target.security)
  const server = target.server === undefined || isMoved ? base : (URL.parse(target.server, base)?.href ?? base)
  const isTrusted = trusted.has(new URL(server).origin)
  return (args: JsonObject) =>
    Effect.gen(function* () {
      const call = yield* requestOf(target, server, args, known, (problem) => failure(known, "InvalidRequest", problem))
      const answer = isTrusted
        ? yield* send({ ...call, headers: { ...call.headers, ...headers } }, access)
        : yield* send<never>(call, undefined)
      return render(target, answer)
    }).pipe(
      Effect.mapError((error) =>
        error.status === 401 && access !== undefined && !isTrusted
          ? failure(
              known,
              "NotConnected",
              `the credential is not sent to ${server}; its origin is to be named in "origins"`
            )
          : error
      )
    )
}

/** Makes the tool of an operation, when it is asked for. */
export const makeTool = <R>(setting: Setting<R>, found: Found, operation: Operation): Made<R> => {
  const { method } = found
  const isReading = method === "GET" || method === "HEAD"
  const description = describe(found)
  const parameters = once(() => parametersOf(setting.schemas, found.fields))
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
  // A decoder of a large schema takes longer than all else, and of a thousand tools a few are called.
  const plain = once(() => Tool.dynamic(operation.name, { ...shape(), execute: executor(setting, found) }))
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

/** Two tools for however many operations: one that searches them, one that calls. */
export const pair = <R>(made: ReadonlyArray<Made<R>>, service: string, prefix: string, outputLimit: number) => {
  const byName = new Map(made.map((one) => [one.operation.name, one]))
  // As of the tools of an agent: two names that fold to one mean neither.
  const folded = new Map<string, Made<R> | undefined>()
  for (const one of made) {
    const key = normaliseName(one.operation.name)
    folded.set(key, folded.has(key) ? undefined : one)
  }
  const searching = Tool.make(`${prefix}_search`, {
    description: `Finds operations of ${service} (it has ${made.length}) by what they do, with the schemas of their arguments. Call one by ${prefix}_call.`,
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
        const hits = find(made, query, limit)
        if (hits.length === 0) return "No operation fits. Try other words: the thing, and what is done with it."
        return hits
          .map(
            ({ description, operation, tool }) =>
              `${operation.name}\n${description}\narguments: ${JSON.stringify(tool().parameters)}`
          )
          .join("\n\n")
      })
  })
  const named = (name: string) => byName.get(name) ?? folded.get(normaliseName(name))
  const calling = Tool.make(`${prefix}_call`, {
    description: `Calls an operation of ${service}, by its name as ${prefix}_search gave it, with arguments of its schema.`,
    parameters: {
      operation: Schema.String,
      arguments: Schema.optionalKey(JsonObject.annotate({ description: "By the operation's schema" }))
    },
    annotations: { openWorld: true },
    outputLimit,
    needsApproval: ({ operation }): boolean => named(operation)?.isReading === false,
    execute: ({ arguments: args = {}, operation: name }) => {
      const one = named(name)
      if (one !== undefined) return one.run(args)
      const near = nearest(
        name,
        made.map(({ operation }) => operation.name)
      )
      const hint = near === undefined ? `Look it up by ${prefix}_search.` : `Did you mean ${near}?`
      return Effect.fail(ToolError.make(`${service} has no operation ${JSON.stringify(cut(name, 100))}. ${hint}`))
    }
  })
  return [searching, calling] as const
}
