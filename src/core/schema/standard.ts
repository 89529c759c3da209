/** Decoders from schemas of other libraries: their JSON Schema for the model, their validation for its arguments. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { fromUnknown, isObject, type Json, type JsonObject } from "../Json.ts"
import { coerce } from "./coerce.ts"
import { type DecodedValue, type Decoding, listProblems, toEffect } from "./decoding.ts"
import { canonical } from "./jsonTree.ts"

interface Issue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

type ValidationResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<Issue> }

/**
 * A schema of any library, of version 1 of the standard, that can write itself down as JSON Schema. zod (from 4.2) and
 * ArkType have it; a schema of valibot is wrapped by `toStandardJsonSchema` of `@valibot/to-json-schema`.
 */
export interface StandardSchema<out Output = unknown> {
  readonly "~standard": {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => ValidationResult<Output> | Promise<ValidationResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
    readonly jsonSchema: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => { readonly [key: string]: unknown }
    }
  }
}

/** No schema of the standard. By this, the compiler tells fields from such schemas. */
export interface NoStandard {
  readonly "~standard"?: undefined
}

const NoJsonSchema = "~effect-deepagents/NoJsonSchema"

/** A type without values: the compiler shows its message for a schema of the standard that gives no JSON Schema. */
export interface NoJsonSchema<out Message extends string> {
  readonly "~standard": { readonly version: 1 }
  readonly [NoJsonSchema]: Message
}

/** True for a schema of Effect, which may be a Standard Schema too. */
export const isCodec = (value: unknown): value is Schema.ConstraintCodec<unknown, unknown> => Schema.isSchema(value)

export const isStandard = (value: unknown): value is StandardSchema =>
  Predicate.hasProperty(value, "~standard") &&
  Predicate.hasProperty(value["~standard"], "validate") &&
  typeof value["~standard"].validate === "function"

/** The JSON Schema of a schema, or a remedy for its author. */
export const jsonSchemaOf = ({ "~standard": standard }: StandardSchema): Result.Result<JsonObject, string> => {
  // Programs without types may give a schema without it.
  const source: unknown = (standard as { readonly jsonSchema?: unknown }).jsonSchema
  if (!Predicate.hasProperty(source, "input")) {
    return Result.fail(
      `the schema of ${standard.vendor} gives no JSON Schema (\`~standard.jsonSchema\`) that the model could read: update ${standard.vendor} (zod has it from 4.2 on), wrap the schema (valibot: toStandardJsonSchema of @valibot/to-json-schema), or give an Effect Schema`
    )
  }
  return Result.match(
    Result.try({ try: () => fromUnknown(standard.jsonSchema.input({ target: "draft-2020-12" })), catch: String }),
    {
      onSuccess: (json) => {
        if (!isObject(json)) return Result.fail(`${standard.vendor} made no JSON Schema of the schema`)
        const { $schema: _, ...schema } = json
        return Result.succeed(schema)
      },
      onFailure: (problem) => Result.fail(`${standard.vendor} can't write the schema as JSON Schema (${problem})`)
    }
  )
}

const keysOf = ({ path = [] }: Issue): ReadonlyArray<PropertyKey> =>
  path.map((segment) => (typeof segment === "object" ? segment.key : segment))

const describe = (issues: ReadonlyArray<Issue>, json: Json, whole: string): string =>
  listProblems(
    issues.map((issue) => ({ keys: keysOf(issue), problem: issue.message })),
    json,
    whole
  )

/** Decodes like `lenient` for Effect schemas; as an effect when the schema validates asynchronously. */
export const lenient =
  <A>(jsonSchema: JsonObject, { "~standard": standard }: StandardSchema<A>, whole: string) =>
  (json: Json): Decoding<DecodedValue<A>, string> => {
    const validated = (value: Json, next: (result: ValidationResult<A>) => Decoding<DecodedValue<A>, string>) => {
      const result = standard.validate(value)
      return Predicate.isPromiseLike(result)
        ? Effect.flatMap(
            Effect.promise(() => Promise.resolve(result)),
            (awaited) => toEffect(next(awaited))
          )
        : next(result)
    }
    return validated(json, (first) => {
      if (first.issues === undefined) return Result.succeed({ json, value: first.value })
      const coerced = coerce(jsonSchema, json)
      // A validation may ask a server: it is not made twice for nothing.
      if (canonical(coerced) === canonical(json)) return Result.fail(describe(first.issues, json, whole))
      return validated(coerced, (second) =>
        second.issues === undefined
          ? Result.succeed({ json: coerced, value: second.value })
          : Result.fail(describe(second.issues, coerced, whole))
      )
    })
  }
