/** Values of a schema as texts: the input and the output of a program. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { fromUnknown, Json, type JsonObject, stringify } from "../Json.ts"
import { lenient } from "./arguments.ts"
import { type DecodedValue, type Decoding, toEffect } from "./decoding.ts"
import { withFiniteNumbers } from "./finiteNumbers.ts"
import { jsonSchemaOf } from "./jsonSchema.ts"
import { isTooDeep, maxDepth } from "./jsonTree.ts"
import type { StandardSchema } from "./standard.ts"
import * as standard from "./standard.ts"

const parseJson = Schema.decodeUnknownResult(Schema.fromJsonString(Json))

const fence = "```"

/** Removes a Markdown fence around the whole text. */
const unfenced = (text: string): string => {
  const trimmed = text.trim()
  const line = trimmed.indexOf("\n")
  const isFenced = line > 0 && ["", "json"].includes(trimmed.slice(fence.length, line).trim())
  return isFenced && trimmed.startsWith(fence) && trimmed.endsWith(fence)
    ? trimmed.slice(line + 1, -fence.length)
    : trimmed
}

/** Reads the JSON of a text, perhaps in a fence; `whole` names it in problems. */
export const parseText = (text: string, whole: string): Result.Result<Json, string> =>
  Result.filterOrFail(
    Result.mapError(parseJson(unfenced(text)), () => `- ${whole} is not JSON`),
    (json) => !isTooDeep(json),
    () => `- ${whole} lies more than ${maxDepth} arrays and objects deep`
  )

/** Writes values as texts and reads them. It fails with one line per problem. */
export interface TextCodec {
  /** The schema of the JSON that it reads; `undefined` for text that means itself. */
  readonly jsonSchema: JsonObject | undefined
  /** Keeps any value from being read. */
  readonly problem: string | undefined
  /** Writes a value that will be read again. */
  readonly write: (value: unknown) => Effect.Effect<string, string>
  /** Writes any value; an invalid one is rejected when it is read. */
  readonly say: (value: unknown) => string
  readonly read: (text: string) => Effect.Effect<unknown, string>
}

export const text: TextCodec = {
  jsonSchema: undefined,
  problem: undefined,
  write: (value) => (typeof value === "string" ? Effect.succeed(value) : Effect.fail("- it is not a text")),
  say: String,
  read: Effect.succeed
}

const make = (
  jsonSchema: JsonObject,
  whole: string,
  decode: (json: Json) => Decoding<DecodedValue<unknown>, string>,
  encode: (value: unknown) => Result.Result<Json, string>
): TextCodec => {
  // A schema of strings is said as it is read.
  const isText = jsonSchema["type"] === "string"
  const toText = (json: Json): string => (isText && typeof json === "string" ? json : stringify(json))
  const readText = (input: string) =>
    Effect.flatMap(
      Effect.fromResult(isText ? Result.succeed<Json>(input) : parseText(input, whole)),
      Effect.fnUntraced(function* (json) {
        const { value } = yield* toEffect(decode(json))
        return value
      })
    )
  return {
    jsonSchema,
    problem: undefined,
    write: Effect.fnUntraced(function* (value) {
      const encodedText = toText(yield* Effect.fromResult(encode(value)))
      yield* readText(encodedText)
      return encodedText
    }),
    say: (value) => toText(Result.getOrElse(encode(value), () => fromUnknown(value))),
    read: readText
  }
}

/**
 * Makes the codec of a schema. One of another library can't encode: its values are written as the JSON that they are,
 * which must be valid input again.
 */
export const fromSchema = (
  source: Schema.ConstraintCodec<unknown, unknown> | StandardSchema,
  whole: string
): TextCodec => {
  if (standard.isCodec(source)) {
    const schema = withFiniteNumbers(source)
    const codec = Schema.toCodecJson(schema)
    const root = jsonSchemaOf(schema)
    const encode = Schema.encodeUnknownResult(codec)
    return make(root, whole, lenient(root, codec, whole), (value) =>
      Result.mapBoth(encode(value), { onSuccess: fromUnknown, onFailure: ({ message }) => message })
    )
  }
  return Result.match(standard.jsonSchemaOf(source), {
    onSuccess: (root) =>
      make(root, whole, standard.lenient(root, source, whole), (value) => Result.succeed(fromUnknown(value))),
    onFailure: (problem) => ({
      jsonSchema: {},
      problem,
      write: () => Effect.fail(problem),
      say: (value) => stringify(fromUnknown(value)),
      read: () => Effect.fail(problem)
    })
  })
}
