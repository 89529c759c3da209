/** Decodes the lines of a JSONL file, and applies them to a thread. */
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Journal from "../../../core/Journal.ts"
import { JsonObject } from "../../../core/Json.ts"
import { encode as encodePieces } from "../../../support/json/jsonPieces.ts"
import { tornMark } from "../../../support/store/appendLog.ts"
import { version } from "../../../support/store/version.ts"
import * as codec from "../codec.ts"
import * as Memory from "../memory/thread.ts"
import { type Guard, isNumber, isString, isUnversioned, isVersion, listOf, objectOf } from "../usual.ts"

/** A record is a line with the id of its writer, so that writers see in the file who was first. */
const record = <Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.TaggedStruct(tag, { by: Schema.String, at: Schema.Finite, ...fields })

const Id = Schema.NullOr(Schema.String)

const Origin = Schema.Struct({ threadId: Schema.String, entryId: Id })

/**
 * A change of a thread. `Repaired` follows a report of unreadable lines. `Closed` marks a thread that was moved to another
 * store; it takes no change until it is `Reopened`.
 */
const Change = Schema.Union([
  record("Create", {
    threadId: Schema.String,
    metadata: JsonObject,
    archived: Schema.Boolean,
    leaf: Id,
    entries: Schema.Array(codec.Stored),
    origin: Schema.optionalKey(
      Schema.Struct({ threadId: Schema.String, by: Schema.String, entryId: Id, count: Schema.Finite })
    ),
    // Only in threads that were copied from another store.
    past: Schema.optionalKey(
      Schema.Struct({
        createdAt: Schema.Finite,
        updatedAt: Schema.Finite,
        origin: Schema.optional(Origin)
      })
    )
  }),
  record("Append", {
    leaf: Id,
    behind: Schema.optionalKey(Id),
    entries: Schema.Array(Schema.Struct({ id: Schema.String, entry: Journal.Entry }))
  }),
  record("Hang", { id: Schema.String, label: codec.Label }),
  record("Move", { from: Id, to: Id }),
  record("Describe", { metadata: JsonObject }),
  record("Archive", { archived: Schema.Boolean }),
  record("Repaired", { lostBytes: Schema.Finite }),
  record("Closed", { to: Schema.String }),
  record("Reopened", {})
])
export type Change = typeof Change.Type
export type Create = Extract<Change, { readonly _tag: "Create" }>
type Append = Extract<Change, { readonly _tag: "Append" }>
export type Mark = Extract<Change, { readonly _tag: "Closed" | "Reopened" }>

const decodeChange = Schema.decodeUnknownResult(Change)

const isId: Guard = (value) => isString(value) || value === null

const isAppend = objectOf(
  {
    v: isVersion,
    _tag: (value) => value === "Append",
    by: isString,
    at: isNumber,
    leaf: isId,
    entries: listOf(objectOf({ id: isString, entry: isUnversioned }))
  },
  { behind: isId }
)
const isUsualAppend = (value: unknown): value is Append & { readonly v: unknown } => isAppend(value)

/** Reads an append of usual entries, of which files mostly consist; `undefined` for the schema to read. */
export const usualAppend = (value: unknown): Change | undefined => {
  if (!isUsualAppend(value)) return undefined
  const { v: _, ...append } = value
  return append
}

/** A decoded line: a change, a change that a crash cut off, or a damaged one. */
export type Line = { readonly change: Change } | { readonly torn: true } | { readonly problem: string }

/** Removes marks from the end. A regular expression would take quadratic time. */
const withoutMarks = (line: string): string => {
  let end = line.length
  while (line[end - 1] === tornMark) end--
  return line.slice(0, end)
}

/** Reads a line without its line feed. */
export const decode = (line: string): Line => {
  const text = withoutMarks(line)
  const parsed = codec.parse(text)
  if (Result.isFailure(parsed)) return text === line ? { problem: parsed.failure } : { torn: true }
  const change = usualAppend(parsed.success)
  return change === undefined ? decodeBySchema(parsed.success) : { change }
}

/** Reads any record. */
export const decodeBySchema = (value: unknown): Line =>
  Result.match(codec.decodeVersioned(value, decodeChange), {
    onFailure: (problem): Line => ({ problem }),
    onSuccess: (change): Line => ({ change })
  })

const beginning = '{"v":'

/** Reports whether bytes may be the beginning of a record. */
export const mayBegin = (bytes: Uint8Array): boolean => {
  const text = new TextDecoder().decode(bytes.subarray(0, beginning.length))
  return beginning.startsWith(text)
}

export const encode = (change: Change): string => JSON.stringify({ v: version, ...change })

/** Encodes a large record piece by piece. */
export const encodeSlowly = (change: Change): Effect.Effect<ReadonlyArray<Uint8Array>> =>
  encodePieces({ v: version, ...change })

/** The effect of a record on its thread: `Void` after another writer was first, `Broken` if it needs a missing entry. */
export type RecordEffect = "Done" | "Void" | "Broken"

const hasEntry = (memory: Memory.Memory, id: string | null): boolean =>
  id === null || Memory.find(memory, id) !== undefined

const applyAppend = (memory: Memory.Memory, { at, behind, entries, leaf }: Append): RecordEffect => {
  if (behind !== undefined && !hasEntry(memory, behind)) return "Broken"
  if (Memory.append(memory, leaf, entries, at, behind === undefined ? leaf : behind)._tag === "Done") return "Done"
  return hasEntry(memory, leaf) ? "Void" : "Broken"
}

/** Applies a record to its thread. */
export const apply = (memory: Memory.Memory, change: Exclude<Change, Create | Mark>): RecordEffect => {
  switch (change._tag) {
    case "Append":
      return applyAppend(memory, change)
    case "Hang":
      if (!hasEntry(memory, change.label.target)) return "Broken"
      return Memory.addLabel(memory, change.id, change.label, change.at)._tag === "Done" ? "Done" : "Void"
    case "Move":
      if ((memory.leaf?.id ?? null) !== change.from) return "Void"
      if (!hasEntry(memory, change.to)) return "Broken"
      return Memory.move(memory, change.from, change.to, change.at) ? "Done" : "Void"
    case "Describe":
    case "Archive":
      Memory.update(memory, change, change.at)
      return "Done"
    case "Repaired":
      return "Void"
  }
}
