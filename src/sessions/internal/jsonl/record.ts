/** The lines of a JSONL file: decoded, and applied to a thread. */
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Journal from "../../../core/Journal.ts"
import { JsonObject } from "../../../core/Json.ts"
import { encode as encodePieces } from "../../../support/json/jsonPieces.ts"
import { tornMark } from "../../../support/store/appendLog.ts"
import { version } from "../../../support/store/version.ts"
import * as codec from "../codec.ts"
import * as Memory from "../memory.ts"
import { type Guard, isNumber, isString, isUnversioned, isVersion, listOf, objectOf } from "../usual.ts"

/** Every record is a line, and says who wrote it: two who write at once learn from the file who was first. */
const record = <Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.TaggedStruct(tag, { by: Schema.String, at: Schema.Finite, ...fields })

const Id = Schema.NullOr(Schema.String)

const Origin = Schema.Struct({ threadId: Schema.String, entryId: Id })

/**
 * A change of a thread. `Repaired`: lines before it that can't be read were reported. `Closed`: the thread was moved to
 * another store, and takes no change until it is `Reopened`.
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
    // Of a thread that was copied from another store.
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

/** The reading of a line: a change, the rest that a crash left of one, or something that nobody wrote like that. */
export type Line = { readonly change: Change } | { readonly torn: true } | { readonly problem: string }

/** Looked at from the end: an expression would look at each `#` of a line as if it were the first at its end. */
const withoutMarks = (line: string): string => {
  let end = line.length
  while (line[end - 1] === tornMark) end--
  return line.slice(0, end)
}

/** Reads a line, without its end. */
export const decode = (line: string): Line => {
  const text = withoutMarks(line)
  const parsed = codec.parse(text)
  if (Result.isFailure(parsed)) return text === line ? { problem: parsed.failure } : { torn: true }
  const known = usualAppend(parsed.success)
  return known === undefined ? decodeBySchema(parsed.success) : { change: known }
}

/** Reads any record. */
export const decodeBySchema = (value: unknown): Line =>
  Result.match(codec.decodeVersioned(value, decodeChange), {
    onFailure: (problem): Line => ({ problem }),
    onSuccess: (change): Line => ({ change })
  })

/** The beginning of every record. */
const beginning = '{"v":'

/** Reports whether bytes that are no whole line can be the beginning of a record. */
export const mayBegin = (bytes: Uint8Array): boolean => {
  const text = new TextDecoder().decode(bytes.subarray(0, beginning.length))
  return beginning.startsWith(text)
}

export const encode = (change: Change): string => JSON.stringify({ v: version, ...change })

/** A line that may be large, piece by piece. */
export const encodeSlowly = (change: Change): Effect.Effect<ReadonlyArray<Uint8Array>> =>
  encodePieces({ v: version, ...change })

/**
 * The effect of a record on the thread: none, when somebody else was first. `Broken`: it builds on what is not there.
 */
export type Effected = "Done" | "Void" | "Broken"

/** Does to a thread what a record says. */
export const apply = (memory: Memory.Memory, change: Exclude<Change, Create | Mark>): Effected => {
  switch (change._tag) {
    case "Append": {
      const { at, behind = change.leaf, entries, leaf } = change
      const isThere = (id: string | null) => id === null || Memory.find(memory, id) !== undefined
      if (behind !== leaf && !isThere(behind)) return "Broken"
      if (Memory.append(memory, leaf, entries, at, behind)._tag === "Done") return "Done"
      return isThere(leaf) ? "Void" : "Broken"
    }
    case "Hang":
      if (change.label.target !== null && Memory.find(memory, change.label.target) === undefined) return "Broken"
      return Memory.addLabel(memory, change.id, change.label, change.at)._tag === "Done" ? "Done" : "Void"
    case "Move":
      if ((memory.leaf?.id ?? null) !== change.from) return "Void"
      if (change.to !== null && Memory.find(memory, change.to) === undefined) return "Broken"
      return Memory.move(memory, change.from, change.to, change.at) ? "Done" : "Void"
    case "Describe":
    case "Archive":
      Memory.update(memory, change, change.at)
      return "Done"
    case "Repaired":
      return "Void"
  }
}
