/** Decodes arguments that a model wrote, and reports their problems. */
import type * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { problems } from "../../support/text/issues.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import { ToolError } from "../ToolError.ts"
import { coerce } from "./coerce.ts"
import { type DecodedValue, type Decoding, listProblems, mapBoth } from "./decoding.ts"
import { asChecked, asDecoded, byCodec, type Write } from "./effective.ts"
import { isEndless } from "./endless.ts"
import { withFiniteNumbers } from "./finiteNumbers.ts"
import { jsonSchemaOf, withUsableValues } from "./jsonSchema.ts"
import type { StandardSchema } from "./standard.ts"
import * as standard from "./standard.ts"

/**
 * Decoded arguments. `json` was decoded in the end: the arguments, perhaps mended. `given` writes the value back as
 * JSON.
 */
export interface Arguments<out A> {
  readonly json: JsonObject
  readonly value: A
  readonly given: () => JsonObject
}

/** Decodes the arguments of a tool call. `problem` is the reason that no call can be decoded. */
export interface Decoder<out A> {
  readonly jsonSchema: JsonObject
  readonly problem?: string | undefined
  readonly decode: (args: JsonObject) => Decoding<Arguments<A>, ToolError>
}

/**
 * Decodes JSON by a schema: as it is, or else with its form mended. Fails with one line per problem; `whole` names the
 * value there.
 */
export const lenient = <A>(jsonSchema: JsonObject, schema: Schema.ConstraintDecoder<A>, whole: string) => {
  const decode = Schema.decodeUnknownResult(schema)
  const decodeAll = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (json: Json): Result.Result<DecodedValue<A>, string> => {
    const first = decode(json)
    if (Result.isSuccess(first)) return Result.succeed({ json, value: first.success })
    const coerced = coerce(jsonSchema, json)
    return Result.mapBoth(decodeAll(coerced), {
      onSuccess: (value) => ({ json: coerced, value }),
      onFailure: (error) =>
        listProblems(
          problems(error.issue).map(({ expected, keys }) => ({ keys, problem: `expected ${expected}` })),
          coerced,
          whole
        )
    })
  }
}

const invalid = (lines: string): ToolError =>
  new ToolError({
    reason: "InvalidArguments",
    message: `The arguments are not valid. Correct them and call again:\n${lines}`
  })

const fromLenient = <A>(
  jsonSchema: JsonObject,
  decode: (json: Json) => Decoding<DecodedValue<A>, string>,
  write: Write<A>
): Decoder<A> => ({
  jsonSchema,
  decode: (args) =>
    mapBoth(decode(args), {
      onSuccess: ({ json, value }) => {
        const decoded = isObject(json) ? json : args
        return { json: decoded, value, given: () => write(value, decoded) }
      },
      onFailure: invalid
    })
})

/** A decoder that checks arguments by a schema, and gives them as they are. */
const checking = (jsonSchema: JsonObject, schema: Schema.ConstraintDecoder<unknown>): Decoder<JsonObject> => {
  const decode = lenient(jsonSchema, schema, "the arguments")
  const asJson = (json: Json): Result.Result<DecodedValue<JsonObject>, string> =>
    Result.map(decode(json), (decoded) => ({ ...decoded, value: isObject(decoded.json) ? decoded.json : {} }))
  return fromLenient(jsonSchema, asJson, asChecked(jsonSchema))
}

export const fromStandard = <A>(schema: StandardSchema<A>): Decoder<A> => {
  const jsonSchema = Result.filterOrFail(
    standard.jsonSchemaOf(schema),
    (json) => json["type"] === "object",
    () => "the schema is not the schema of an object; wrap it in one"
  )
  return Result.match(jsonSchema, {
    onSuccess: (json) => fromLenient(json, standard.lenient(json, schema, "the arguments"), asDecoded(json)),
    onFailure: (problem) => ({
      jsonSchema: { type: "object" },
      problem,
      decode: () => Result.fail(invalid(`- ${problem}`))
    })
  })
}

/** A decoder from an Effect schema, made once a tool. */
export const fromSchema = <A>(source: Schema.ConstraintCodec<A, unknown>): Decoder<A> => {
  const schema = withFiniteNumbers(source)
  const jsonSchema = jsonSchemaOf(schema)
  const codec = Schema.toCodecJson(schema)
  return fromLenient(jsonSchema, lenient(jsonSchema, codec, "the arguments"), byCodec(jsonSchema, codec))
}

/**
 * Makes a decoder from a JSON Schema. The tool itself checks what the importer can't express, so a foreign schema never
 * makes a tool unusable. Patterns are ignored, since a hostile pattern could hang the run, and so are the rules of a
 * schema that is too deep or too large.
 */
export const fromJsonSchema = (jsonSchema: JsonObject): Decoder<JsonObject> => {
  // A schema that is too deep overflows the stack.
  const imported = Result.try(() => {
    if (isEndless(jsonSchema)) return undefined
    const { $defs, ...schema } = withUsableValues(jsonSchema)
    const definitions: { [name: string]: JsonSchema.JsonSchema } = {}
    if (isObject($defs))
      for (const [name, definition] of Object.entries($defs)) if (isObject(definition)) definitions[name] = definition
    return SchemaRepresentation.fromJsonSchemaDocument(
      { dialect: "draft-2020-12", schema, definitions },
      { patterns: "ignore" }
    )
  })
  if (Result.isFailure(imported) || imported.success === undefined) return checking(jsonSchema, Schema.JsonObject)
  return checking(jsonSchema, Schema.make<Schema.Codec<unknown>>(imported.success.ast))
}
