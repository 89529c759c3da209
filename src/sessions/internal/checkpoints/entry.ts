/** The state of a path: a file, a link or a folder of the machine, or nothing. */
import * as Schema from "effect/Schema"

/**
 * - `mode`: the permission bits
 * - `hash`: the SHA-256 of content that the store has. A file without one can only be told apart by its `stamp`
 * - `stamp`: inode, size, modification and change time
 * - `oid`: the object of git with this content
 */
export const File = Schema.TaggedStruct("File", {
  mode: Schema.Int,
  size: Schema.Int,
  hash: Schema.optionalKey(Schema.String),
  stamp: Schema.optionalKey(Schema.String),
  oid: Schema.optionalKey(Schema.String)
})
export type File = typeof File.Type

export const Entry = Schema.Union([
  File,
  Schema.TaggedStruct("Link", { to: Schema.String }),
  Schema.TaggedStruct("Folder", { mode: Schema.Int })
])
export type Entry = typeof Entry.Type

/** What a path is: `undefined` stands for nothing. */
export type State = Entry | undefined

/** The part of a stamp that a move keeps: all but the change time. */
export const referenceOf = (file: File): string | undefined => file.stamp?.slice(0, file.stamp.lastIndexOf(":"))

/** Tells whether two files have the same content, as far as can be told. */
export const hasSameContent = (left: File, right: File): boolean =>
  left.hash !== undefined && right.hash !== undefined
    ? left.hash === right.hash
    : (left.oid !== undefined && left.oid === right.oid) ||
      (left.stamp !== undefined && right.stamp !== undefined && referenceOf(left) === referenceOf(right))

export const isSame = (left: State, right: State): boolean => {
  if (left === undefined || right === undefined) return left === right
  if (left._tag === "Link") return right._tag === "Link" && left.to === right.to
  if (left._tag === "Folder") return right._tag === "Folder" && left.mode === right.mode
  return right._tag === "File" && left.mode === right.mode && hasSameContent(left, right)
}

/** A path that a turn changed. `isUnsure`: found after a crash, so somebody else may have changed it. */
export const Change = Schema.Struct({
  path: Schema.String,
  before: Schema.NullOr(Entry),
  after: Schema.NullOr(Entry),
  /** False while a tool acts on the path. */
  isSeen: Schema.Boolean,
  isUnsure: Schema.Boolean
})
export type Change = typeof Change.Type

/** A path to bring from one state to another. */
export const Aim = Schema.Struct({ path: Schema.String, from: Schema.NullOr(Entry), to: Schema.NullOr(Entry) })
export type Aim = typeof Aim.Type
