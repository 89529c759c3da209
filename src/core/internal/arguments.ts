import type * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { cut } from "../../support/text.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import { ToolError } from "../ToolError.ts"
import { coerce } from "./coerce.ts"
import { isEndless } from "./endless.ts"
import { withFiniteNumbers } from "./finiteNumbers.ts"
import { at, brief, problems } from "./issues.ts"
import { jsonSchemaOf } from "./jsonSchema.ts"

/** Decodes the arguments of a tool call. `json` is what was decoded in the end: the arguments, perhaps coerced. */
export interface Decoder<out A> {
  readonly jsonSchema: JsonObject
  readonly decode: (args: JsonObject) => Result.Result<{ readonly json: JsonObject; readonly value: A }, ToolError>
}

const problemLimit = 8

/** A path may be made of keys that the model wrote: of whatever length. */
const pathLimit = 200

const describe = (error: Schema.SchemaError, json: Json, whole: string): string => {
  const found = problems(error.issue)
  const lines = found.slice(0, problemLimit).map((one) => {
    const value = at(json, one.keys)
    const path = one.path === "" ? whole : `\`${cut(one.path, pathLimit)}\``
    return value === undefined && one.keys.length > 0
      ? `- ${path} is missing`
      : `- ${path}: expected ${one.expected}, got ${brief(value)}`
  })
  const more = found.length - lines.length
  return [...lines, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n")
}

/**
 * Decodes what a model wrote for a schema: as it is, else with its form mended. Fails with what is wrong, a line for each
 * problem; `whole` is what the value is called there.
 */
export const lenient = <A>(jsonSchema: JsonObject, schema: Schema.ConstraintDecoder<A>, whole: string) => {
  const decode = Schema.decodeUnknownResult(schema)
  const decodeAll = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (json: Json): Result.Result<{ readonly json: Json; readonly value: A }, string> => {
    const first = decode(json)
    if (Result.isSuccess(first)) return Result.succeed({ json, value: first.success })
    const coerced = coerce(jsonSchema, json)
    return Result.mapBoth(decodeAll(coerced), {
      onSuccess: (value) => ({ json: coerced, value }),
      onFailure: (error) => describe(error, coerced, whole)
    })
  }
}

const make = <A>(jsonSchema: JsonObject, schema: Schema.ConstraintDecoder<A>): Decoder<A> => {
  const decode = lenient(jsonSchema, schema, "the arguments")
  return {
    jsonSchema,
    decode: (args) =>
      Result.mapBoth(decode(args), {
        onSuccess: ({ json, value }) => ({ json: isObject(json) ? json : args, value }),
        onFailure: (lines) =>
          new ToolError({
            reason: "InvalidArguments",
            message: `The arguments are not valid. Correct them and call again:\n${lines}`
          })
      })
  }
}

/** A decoder from an Effect schema, made once a tool. */
export const fromSchema = <A>(given: Schema.ConstraintCodec<A, unknown>): Decoder<A> => {
  const schema = withFiniteNumbers(given)
  return make(jsonSchemaOf(schema), Schema.toCodecJson(schema))
}

/**
 * A decoder from a JSON Schema. What the importer can't express, or would never come to the end of, is left to the tool
 * itself: a foreign schema must not make the tool unusable. Patterns are not applied, since a hostile one could hang the run.
 */
export const fromJsonSchema = (jsonSchema: JsonObject): Decoder<JsonObject> => {
  if (isEndless(jsonSchema)) return make(jsonSchema, Schema.JsonObject)
  const { $defs, ...schema } = jsonSchema
  const definitions: { [name: string]: JsonSchema.JsonSchema } = {}
  if (isObject($defs))
    for (const [name, definition] of Object.entries($defs)) if (isObject(definition)) definitions[name] = definition
  const imported = Result.try(() =>
    SchemaRepresentation.fromJsonSchemaDocument(
      { dialect: "draft-2020-12", schema, definitions },
      { patterns: "ignore" }
    )
  )
  if (Result.isFailure(imported)) return make(jsonSchema, Schema.JsonObject)
  const checked = Schema.make<Schema.Codec<unknown>>(imported.success.ast)
  const check = make<unknown>(jsonSchema, checked)
  return { jsonSchema, decode: (args) => Result.map(check.decode(args), ({ json }) => ({ json, value: json })) }
}
