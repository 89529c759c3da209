/**
 * Tools: what an agent can do, with typed arguments and typed needs.
 *
 * A failure of `execute`, of whatever type, is told to the model, which can act on it; it does not end the run. To end
 * the run on one, fail in a middleware's `wrapToolCall`.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-deepagents"
 *
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   parameters: { left: Schema.Finite, right: Schema.Finite },
 *   execute: ({ left, right }) => Effect.succeed(String(left + right)),
 *   annotations: { readOnly: true }
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Decoder, fromJsonSchema, fromSchema } from "./internal/arguments.ts"
import type { JsonObject } from "./Json.ts"
import { fromUnknown, type ToolError } from "./ToolError.ts"
import { fromResult, type ToolOutput } from "./ToolOutput.ts"

/**
 * What a tool does to the world (MCP's hints): it only reads; it may destroy; doing it twice is doing it once; it
 * touches things outside of the agent's own world. `paged`: it gives large things in parts by itself, so that its results
 * are never put into files. `volatile`: the same call may be answered otherwise the next time (a status, a command, a
 * test run), so a model that makes it again does not go in circles. What is not said counts as not so.
 */
export interface Annotations {
  readonly readOnly?: boolean
  readonly destructive?: boolean
  readonly idempotent?: boolean
  readonly openWorld?: boolean
  readonly paged?: boolean
  readonly volatile?: boolean
}

/** A call whose arguments were decoded: the arguments as they will be used (after coercion), and the work. */
export interface Prepared<out R> {
  readonly arguments: JsonObject
  readonly execute: Effect.Effect<ToolOutput, ToolError, R>
}

/**
 * A tool that needs `R` to run. `parameters` is a JSON Schema of an object; `outputLimit` is in characters of text and
 * cuts longer results and failures (head and tail stay); without one, those of more than `ToolOutput.defaultLimit` are cut
 * for the model.
 */
export interface Tool<out R = never> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
  readonly annotations: Annotations
  readonly outputLimit: number | undefined
  /** The names of the tools that a call of it can lead to: those of the sub-agents that it runs. */
  readonly reaches?: ReadonlySet<string> | undefined
  readonly prepare: (args: JsonObject) => Result.Result<Prepared<R>, ToolError>
}

/**
 * The name of the tool by which an agent with an `output` schema is answered, where its model has no JSON-schema mode.
 * No other tool of such an agent may have it, and what narrows a request's tools should leave it in.
 */
export const finalAnswer = "final_answer"

/** What a tool needs. */
export type Services<T> = T extends Tool<infer R> ? R : never

/**
 * What any tool can be given beside its parameters and its work. One that runs agents says by `reaches` which tools these
 * have (`Agent.toolNames`): an inherited rule about such a tool is not taken for a misspelt one.
 */
export interface Options {
  readonly description: string
  readonly annotations?: Annotations
  readonly outputLimit?: number
  readonly reaches?: ReadonlySet<string> | undefined
}

/**
 * Ends a call whose tool broke its type, with words for its author: types say what `execute` gives, programs without them
 * do not. A promise that nobody awaits must not end the process.
 */
const broken = (name: string, given: unknown, wanted: string): Effect.Effect<never> => {
  const isPromise = Predicate.isPromiseLike(given)
  if (isPromise) given.then(undefined, () => undefined)
  const hint = isPromise ? "; wrap the promise in Effect.tryPromise" : ""
  return Effect.die(new TypeError(`execute of the tool "${name}" gave ${nameOf(given)}, not ${wanted}${hint}`))
}

const nameOf = (given: unknown): string =>
  Predicate.isPromiseLike(given)
    ? "a promise"
    : given === null
      ? "null"
      : Array.isArray(given)
        ? "an array"
        : typeof given

const assemble = <A, E, R>(
  name: string,
  options: Options,
  decoder: Decoder<A>,
  execute: (args: A) => Effect.Effect<ToolOutput | string, E, R>
): Tool<R> => ({
  name,
  description: options.description,
  parameters: decoder.jsonSchema,
  annotations: options.annotations ?? {},
  outputLimit: options.outputLimit,
  reaches: options.reaches,
  prepare: (args) =>
    Result.map(decoder.decode(args), (decoded) => ({
      arguments: decoded.json,
      execute: Effect.matchEffect(
        Effect.suspend((): Effect.Effect<unknown, E, R> => {
          const work = execute(decoded.value)
          return Effect.isEffect(work) ? work : broken(name, work, "an Effect")
        }),
        {
          onSuccess: (given) => {
            const output = fromResult(given)
            return output === undefined ? broken(name, given, "a text or a ToolOutput") : Effect.succeed(output)
          },
          onFailure: (error) => Effect.fail(fromUnknown(error))
        }
      )
    }))
})

/**
 * Makes a tool from Schema fields. Arguments are decoded with them; what small models get wrong in form (a number as a
 * string, one object where a list is expected, JSON inside a string) is coerced where the schema leaves no doubt.
 */
export const make = <
  const Fields extends { readonly [name: string]: Schema.ConstraintCodec<unknown, unknown> },
  E = never,
  R = never
>(
  name: string,
  options: Options & {
    readonly parameters: Fields
    readonly execute: (args: Schema.Struct<Fields>["Type"]) => Effect.Effect<ToolOutput | string, E, R>
  }
): Tool<R> => assemble(name, options, fromSchema(Schema.Struct(options.parameters)), options.execute)

/**
 * Makes a tool from a JSON Schema, for tools that are only known at run time (MCP, OpenAPI). Arguments are checked
 * against the schema as far as it can be interpreted, and arrive as JSON.
 */
export const dynamic = <E = never, R = never>(
  name: string,
  options: Options & {
    readonly parameters: JsonObject
    readonly execute: (args: JsonObject) => Effect.Effect<ToolOutput | string, E, R>
  }
): Tool<R> => assemble(name, options, fromJsonSchema(options.parameters), options.execute)

/** Runs a tool on its own, as a test or a script does: arguments are decoded like a model's. */
export const run = <R>(tool: Tool<R>, args: JsonObject): Effect.Effect<ToolOutput, ToolError, R> =>
  Effect.flatMap(
    Effect.suspend(() => Effect.fromResult(tool.prepare(args))),
    (prepared) => prepared.execute
  )
