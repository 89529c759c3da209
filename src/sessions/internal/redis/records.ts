/** Encodes and decodes threads and entries in Redis. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Entry, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import * as codec from "../codec.ts"

/** Encodes an optional id for scripts. */
export const mark = (id: string | null): string => (id === null ? "-" : `+${id}`)

export const unmark = (value: string | undefined): string | null =>
  value === undefined || value === "" || value === "-" ? null : value.slice(1)

/** Reads a reply as texts. Missing ones are empty. */
export const texts = (reply: unknown): ReadonlyArray<string> =>
  Array.isArray(reply)
    ? reply.map((part: unknown) => (Predicate.isString(part) || Predicate.isNumber(part) ? String(part) : ""))
    : []

/** Reads a reply as lists of texts. */
export const lists = (reply: unknown): ReadonlyArray<ReadonlyArray<string>> =>
  Array.isArray(reply) ? reply.map(texts) : []

/** Reads a thread from its fields, in the order of `scripts.ts`. */
export const toThread = (fields: ReadonlyArray<string>): Result.Result<Thread, string> => {
  const [threadId = "", created, updated, metadata = "", archived, leaf, step, , originThread = "", entry] = fields
  return Result.map(codec.decodeObject(metadata), (decoded) => ({
    threadId,
    leaf: { id: unmark(leaf), step: Number(step) },
    createdAt: Number(created),
    updatedAt: Number(updated),
    metadata: decoded,
    archived: archived === "1",
    origin: originThread === "" ? undefined : { threadId: originThread, entryId: unmark(entry) }
  }))
}

/** Writes an entry as a line of its properties, and its JSON. */
export const toPart = ({ at, entry, id, parentId }: StoredEntry): string =>
  `${JSON.stringify([id, parentId, at, entry._tag])}\n${codec.encode(entry)}`

/** Writes a record as the scripts do. */
export const toRecord = (entry: StoredEntry, place: string, step: number): string => `${place} ${step} ${toPart(entry)}`

const Line = Schema.Tuple([Schema.String, Schema.NullOr(Schema.String), Schema.Finite, Schema.String])
const decodeLine = Schema.decodeUnknownResult(Line)

/** A record. Its body is the JSON of the entry. */
export interface Record {
  readonly id: string
  readonly parentId: string | null
  readonly at: number
  readonly step: number
  readonly tag: string
  readonly body: string
}

export const toRecordOf = (text: string): Result.Result<Record, string> => {
  const [end, first] = [text.indexOf("\n"), text.indexOf(" ")]
  const second = text.indexOf(" ", first + 1)
  const problem = () => "a record is not as this library writes it"
  return Result.map(
    Result.mapError(Result.flatMap(codec.parse(text.slice(second + 1, end)), decodeLine), problem),
    ([id, parentId, at, tag]) => ({
      id,
      parentId,
      at,
      tag,
      step: Number(text.slice(first + 1, second)),
      body: text.slice(end + 1)
    })
  )
}

export const toStored = ({ at, body, id, parentId }: Record): Result.Result<StoredEntry, string> =>
  Result.mapBoth(
    Result.flatMap(codec.parse(body), (value): Result.Result<Entry, string> => codec.decode(value)),
    {
      onFailure: (problem) => `entry ${id}: ${problem}`,
      onSuccess: (entry) => ({ id, parentId, at, entry })
    }
  )
