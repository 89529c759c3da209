/** Encodes and decodes the entries of threads. */
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Journal from "../../core/Journal.ts"
import { isObject, JsonObject } from "../../core/Json.ts"
import type { Entry } from "../../core/SessionStore.ts"
import { stringify } from "../../support/json/jsonPieces.ts"
import { version, versionProblem } from "../../support/store/version.ts"
import { usual, usualNew } from "./usual.ts"

/** Schema of a label. */
export const Label = Schema.TaggedStruct("Label", { name: Schema.String, target: Schema.NullOr(Schema.String) })
const Any = Schema.Union([...Journal.Entry.members, Label])

const checkNew = Schema.decodeUnknownResult(Schema.toType(Journal.Entry))
const decodeAny = Schema.decodeUnknownResult(Any)

const problem = (error: Schema.SchemaError): string => error.message.split("\n").slice(0, 4).join(" ").slice(0, 400)

/** Checks a new entry, and removes keys that its schema does not have. */
export const check = (entry: unknown): Result.Result<Journal.Entry, string> => {
  const usualEntry = usualNew(entry)
  return usualEntry === undefined ? checkBySchema(entry) : Result.succeed(usualEntry)
}

/** Checks any entry. */
export const checkBySchema = (entry: unknown): Result.Result<Journal.Entry, string> =>
  Result.mapError(checkNew(entry), problem)

/** A record with the version that it was written in. */
const versioned = (value: unknown): unknown => (isObject(value) ? value["v"] : undefined)

/** Reads what says its version by a decoder. */
export const decodeVersioned = <A>(
  value: unknown,
  decode: (value: unknown) => Result.Result<A, Schema.SchemaError>
): Result.Result<A, string> => {
  const wrong = versionProblem(versioned(value))
  return wrong === undefined ? Result.mapError(decode(value), problem) : Result.fail(wrong)
}

/** Reads an entry. Entries of the first versions in tables have no version. */
export const decode = (value: unknown): Result.Result<Entry, string> => {
  const usualEntry = usual(value)
  return usualEntry === undefined ? decodeBySchema(value) : Result.succeed(usualEntry)
}

/** Reads any entry. */
export const decodeBySchema = (value: unknown): Result.Result<Entry, string> =>
  versioned(value) === undefined ? Result.mapError(decodeAny(value), problem) : decodeVersioned(value, decodeAny)

/** Writes an entry for tables. */
export const encode = (entry: Entry): string => JSON.stringify({ v: version, ...entry })

/** Writes an entry that may be large for tables, piece by piece. */
export const encodeSlowly = (entry: Entry): Effect.Effect<string> => stringify({ v: version, ...entry })

/** Parses JSON. */
export const parse = (text: string): Result.Result<unknown, string> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is no JSON" })

/** Schema of an entry in its place. */
export const Stored = Schema.Struct({
  id: Schema.String,
  parentId: Schema.NullOr(Schema.String),
  at: Schema.Finite,
  entry: Any
})
const decodeStored = Schema.decodeUnknownResult(Stored)

const Head = Schema.Struct({
  threadId: Schema.String,
  createdAt: Schema.Finite,
  metadata: JsonObject,
  archived: Schema.Boolean,
  leaf: Schema.NullOr(Schema.String)
})
export type Head = typeof Head.Type

const decodeHeadValue = Schema.decodeUnknownResult(Head)

/** Reads the first line of an export. */
export const decodeHead = (line: string): Result.Result<Head, string> =>
  Result.flatMap(parse(line), (value) => decodeVersioned(value, decodeHeadValue))

/** Reads any other line of an export. */
export const decodeLine = (line: string): Result.Result<typeof Stored.Type, string> =>
  Result.flatMap(parse(line), (value) => decodeVersioned(value, decodeStored))

export const encodeHead = (head: Head): string => JSON.stringify({ v: version, ...head })

export const encodeLine = (entry: typeof Stored.Type): string => JSON.stringify({ v: version, ...entry })

const decodeMetadata = Schema.decodeUnknownResult(JsonObject)

/** Metadata of a thread: a JSON object of at most 64 KiB as text. */
export const checkMetadata = (value: unknown): Result.Result<JsonObject, string> =>
  Result.flatMap(Result.mapError(decodeMetadata(value), problem), (metadata) =>
    JSON.stringify(metadata).length > 65_536
      ? Result.fail("metadata are limited to 65,536 characters of JSON; keep the rest elsewhere")
      : Result.succeed(metadata)
  )

/** Reads metadata from JSON text. */
export const decodeObject = (text: string): Result.Result<JsonObject, string> =>
  Result.flatMap(parse(text), (value) => Result.mapError(decodeMetadata(value), problem))

export const toJson = (value: JsonObject): string => JSON.stringify(value)
